package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestDuplicatesOfASlowRequestReachTheServiceOnce(t *testing.T) {
	t.Parallel()
	service := upstream(t)
	p := start(t, "-upstream", service)
	answers := make(chan answer, 5)
	ask := func() {
		a, err := p.try(t.Context(), "/slow", "k", "500")
		if err != nil {
			t.Error(err)
		}
		answers <- a
	}
	go ask()
	awaitArrival(t, service, "/slow")
	for range 4 {
		go ask()
	}
	for range 4 {
		if a := <-answers; a.status != http.StatusConflict || a.header.Get("Retry-After") == "" {
			t.Errorf("%+v", a)
		}
	}
	_, err := get(t, service+"/release")
	must(t, err)
	first, again := <-answers, p.post("/slow", "k", "500")
	if first.status != http.StatusCreated || again.body != first.body || again.header.Get("Idempotency-Replayed") != "true" ||
		again.header.Get("Set-Cookie") != "" {
		t.Errorf("first %+v\nagain %+v", first, again)
	}
	if n := arrived(t, service, "/slow"); n != "1" {
		t.Error(n, "arrived")
	}
}

func TestResponseOutlivesTheGateway(t *testing.T) {
	t.Parallel()
	service := upstream(t)
	p := start(t, "-upstream", service)
	first := p.post("/pay", "k", "500")
	p.kill()
	p.restart()
	again := p.post("/pay", "k", "500")
	if first.status != http.StatusCreated || again.body != first.body || arrived(t, service, "/pay") != "1" {
		t.Errorf("first %+v\nagain %+v", first, again)
	}
	if a := p.post("/pay", "k", "900"); a.status != http.StatusUnprocessableEntity {
		t.Errorf("%+v", a)
	}
}

func TestGatewayThatIsKilledInTheMiddleKeepsItsGuarantee(t *testing.T) {
	t.Parallel()
	for guarantee, row := range map[string]struct {
		status  int
		arrived string
	}{
		"at-most-once":  {http.StatusConflict, "1"},
		"at-least-once": {http.StatusCreated, "2"},
	} {
		t.Run(guarantee, func(t *testing.T) {
			t.Parallel()
			service := upstream(t)
			p := start(t, "-upstream", service, "-guarantee", guarantee, "-lease", "1s")
			broken := make(chan error)
			go func() { _, err := p.try(t.Context(), "/slow", "k", "500"); broken <- err }()
			awaitArrival(t, service, "/slow")
			p.kill()
			if <-broken == nil {
				t.Error("the client was answered by a gateway that was killed")
			}
			_, err := get(t, service+"/release")
			must(t, err)
			p.restart()
			a := p.post("/slow", "k", "500")
			for began := time.Now(); a.header.Get("Retry-After") != "" && time.Since(began) < time.Minute; { // the lease is not over
				time.Sleep(50 * time.Millisecond)
				a = p.post("/slow", "k", "500")
			}
			if n := arrived(t, service, "/slow"); a.status != row.status || n != row.arrived {
				t.Errorf("%+v, %s arrived; want %+v", a, n, row)
			}
		})
	}
}

func TestClientThatGivesUpFindsTheResponseLater(t *testing.T) {
	t.Parallel()
	service := upstream(t)
	p := start(t, "-upstream", service, "-wait", "30s")
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() { defer close(gone); _, _ = p.try(ctx, "/slow", "k", "500") }()
	awaitArrival(t, service, "/slow")
	cancel()
	<-gone
	_, err := get(t, service+"/release")
	must(t, err)
	if a := p.post("/slow", "k", "500"); a.status != http.StatusCreated || arrived(t, service, "/slow") != "1" {
		t.Errorf("%+v, %s arrived", a, arrived(t, service, "/slow"))
	}
}

func TestServiceThatIsDownIsA502ThatIsNotStored(t *testing.T) {
	t.Parallel()
	for _, guarantee := range []string{"at-least-once", "at-most-once"} {
		t.Run(guarantee, func(t *testing.T) {
			t.Parallel()
			service := upstream(t)
			port := freeAddress(t)
			p := start(t, "-upstream", "http://"+port, "-guarantee", guarantee)
			for range 2 { // nothing has run: a guard may run too
				a := p.post("/pay", "k", "500")
				if a.status != http.StatusBadGateway || a.header.Get("Content-Type") != "application/problem+json" || strings.Contains(a.body, port) {
					t.Errorf("%+v", a)
				}
			}
			p.kill()
			p.args = append(p.args, "-upstream", service)
			p.restart()
			if a := p.post("/pay", "k", "500"); a.status != http.StatusCreated || a.header.Get("Idempotency-Replayed") != "" {
				t.Errorf("%+v", a)
			}
		})
	}
}

func TestServiceThatBreaksOffIsAskedAgainAsTheGuaranteeSays(t *testing.T) {
	t.Parallel()
	for guarantee, row := range map[string]struct {
		second  int
		arrived string
	}{
		"at-least-once": {http.StatusBadGateway, "3"},
		"at-most-once":  {http.StatusConflict, "2"},
	} {
		t.Run(guarantee, func(t *testing.T) {
			t.Parallel()
			service := upstream(t)
			p := start(t, "-upstream", service, "-guarantee", guarantee)
			for _, body := range []string{"500", ""} {
				key := "k" + body
				p.post("/pay", "warm"+body, "") // so that there is a connection, on which Go's transport would try again by itself
				if a := p.post("/die"+body, key, body); a.status != http.StatusBadGateway {
					t.Errorf("%+v", a)
				}
				if n := arrived(t, service, "/die"+body); n != "1" {
					t.Errorf("one request with the body %q has arrived %s times", body, n)
				}
			}
			p.post("/die", "again", "1")
			if a := p.post("/die", "again", "1"); a.status != row.second || arrived(t, service, "/die") != row.arrived {
				t.Errorf("%+v, %s arrived", a, arrived(t, service, "/die"))
			}
		})
	}
}

func TestHopHeadersStayAndTheFenceGoesThrough(t *testing.T) {
	t.Parallel()
	service := upstream(t)
	p := start(t, "-upstream", service)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/echo", strings.NewReader("12345"))
	must(t, err)
	r.Host = "shop.example"
	r.Header = http.Header{
		"Idempotency-Key": {`"k"`}, "Connection": {"X-Hop"}, "X-Hop": {"1"}, "Te": {"gzip"}, "Keep-Alive": {"timeout=5"}, "Proxy-Authorization": {"secret"},
		"Idempotency-Fence": {"999"}, "X-Forwarded-For": {"1.2.3.4"}, "Authorization": {"Bearer t"},
	}
	a, err := do(r)
	must(t, err)
	var seen struct {
		Headers map[string]string `json:"headers"`
		Length  int               `json:"length"`
	}
	must(t, json.Unmarshal([]byte(a.body), &seen))
	h := seen.Headers
	for _, hop := range []string{"x-hop", "te", "keep-alive", "proxy-authorization", "transfer-encoding"} {
		if h[hop] != "" {
			t.Errorf("%s went through: %q", hop, h[hop])
		}
	}
	if h["host"] != "shop.example" || h["authorization"] != "Bearer t" || h["idempotency-key"] != `"k"` || h["x-forwarded-for"] != "127.0.0.1" ||
		len(h["idempotency-fence"]) < 10 || h["idempotency-attempt"] != "1" || seen.Length != 5 {
		t.Errorf("%+v", seen)
	}
}

func TestBodiesOfUnknownLengthAreStoredAndLargeOnesStream(t *testing.T) {
	t.Parallel()
	service := upstream(t)
	p := start(t, "-upstream", service, "-max-body", "3000000")
	for range 2 {
		if a := p.post("/unknown-length", "k", ""); a.body != "one,two" {
			t.Errorf("%+v", a)
		}
	}
	if a := p.post("/large", "k", ""); len(a.body) != 5<<20 {
		t.Error(a.status, len(a.body))
	}
	if a := p.post("/large", "k", ""); a.body != "" || a.header.Get("Idempotency-Replayed") != "omitted" {
		t.Error(a.status, len(a.body), a.header)
	}
	if n := arrived(t, service, "/large"); n != "1" {
		t.Error(n, "arrived")
	}
	if a := p.post("/echo", "k", strings.Repeat("x", 3_000_000)); !strings.Contains(a.body, `"length": 3000000`) {
		t.Errorf("%+v", a)
	}
	// The client may still be sending when the connection closes.
	if a, err := p.try(t.Context(), "/echo", "k2", strings.Repeat("x", 3_000_001)); err == nil && a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("%+v", a)
	}
	// One whose length the client does not say arrives with it.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/echo", io.MultiReader(strings.NewReader("12"), strings.NewReader("3")))
	must(t, err)
	r.Header.Set("Idempotency-Key", "k3")
	if a, err := do(r); err != nil || !strings.Contains(a.body, `"length": 3}`) {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestEventsComeAsTheyAreSent(t *testing.T) {
	t.Parallel()
	service := upstream(t)
	p := start(t, "-upstream", service)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/events", http.NoBody)
	must(t, err)
	r.Header.Set("Idempotency-Key", "k")
	res, err := client.Do(r)
	must(t, err)
	defer res.Body.Close()
	events := bufio.NewReader(res.Body)
	if line, err := events.ReadString('\n'); err != nil || line != "data: first\n" {
		t.Fatal(line, err)
	}
	_, err = get(t, service+"/release") // only now is there a second
	must(t, err)
	rest, err := io.ReadAll(events)
	if err != nil || !strings.Contains(string(rest), "second") {
		t.Error(string(rest), err)
	}
}

func TestGracefulEndLetsRequestsFinish(t *testing.T) {
	t.Parallel()
	service := upstream(t)
	p := start(t, "-upstream", service)
	over := make(chan answer)
	go func() {
		a, err := p.try(t.Context(), "/slow", "k", "500")
		if err != nil {
			t.Error(err)
		}
		over <- a
	}()
	awaitArrival(t, service, "/slow")
	must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		a, err := get(t, p.admin+"/readyz")
		if err == nil && a.status == http.StatusServiceUnavailable {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatal("it stays ready", a, err)
		}
	}
	if a, err := get(t, p.admin+"/healthz"); err != nil || a.status != http.StatusOK {
		t.Error("it is not alive:", a, err)
	}
	_, err := get(t, service+"/release")
	must(t, err)
	if a := <-over; a.status != http.StatusCreated {
		t.Errorf("%+v", a)
	}
	if err := <-p.over; err != nil {
		t.Error("the gateway ended with", err)
	}
}
