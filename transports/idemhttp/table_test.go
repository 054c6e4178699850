package idemhttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	"github.com/idem-go/idem/transports/idemhttp"
)

// TestRules is the table of CASES H over each store, guarantee and version of HTTP.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, st := range stores {
		for _, g := range st.guarantees {
			for _, http2 := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%v/http2=%v", st.name, g, http2), func(t *testing.T) {
					t.Parallel()
					for name, rule := range rules {
						t.Run(name, func(t *testing.T) {
							t.Parallel()
							rule(t, st.open(t), g, http2)
						})
					}
				})
			}
		}
	}
}

var rules = map[string]func(t *testing.T, d driver.Driver, g idem.Guarantee, http2 bool){
	"H1 a duplicate gets the stored response": func(t *testing.T, d driver.Driver, g idem.Guarantee, http2 bool) {
		t.Helper()
		s := serve(t, d, g, http2, idemhttp.WithRollback(func(status int) bool { return status >= 500 }))
		for _, status := range []int{201, 404, 402} {
			s.handler = func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				w.Header()["Link"] = []string{`</a>; rel="next", </b>`, "</c>"}
				w.Header().Set("Location", "/payments/1")
				w.Header().Set("Set-Cookie", "session=1")
				w.Header().Set("X-Trace", "1")
				w.WriteHeader(status)
				fmt.Fprintf(w, "%s\x00\xff", body)
			}
			key := fmt.Sprint("h1-", status)
			first := s.send(request{key: key})
			again := s.send(request{key: key, body: `{ "amount" : 5e2 }`})
			if first.status != status || again.status != status || first.body != again.body || first.body != "{\"amount\":500}\x00\xff" ||
				!slices.Equal(again.header["Link"], first.header["Link"]) || len(again.header["Link"]) != 2 ||
				again.header.Get("Location") != "/payments/1" {
				t.Errorf("first %+v\nagain %+v", first, again)
			}
			if first.header.Get("Idempotency-Replayed") != "" || again.header.Get("Idempotency-Replayed") != "true" ||
				again.header.Get("Idempotency-Key") != key || first.header.Get("Idempotency-Key") != key {
				t.Errorf("first %v\nagain %v", first.header, again.header)
			}
			if first.header.Get("Set-Cookie") == "" || again.header.Get("Set-Cookie") != "" || again.header.Get("X-Trace") != "" {
				t.Errorf("H4: first %v\nagain %v", first.header, again.header)
			}
			if again.header.Get("Content-Type") != first.header.Get("Content-Type") {
				t.Errorf("the type is %q, then %q", first.header.Get("Content-Type"), again.header.Get("Content-Type"))
			}
		}
		if s.runs.Load() != 3 {
			t.Error(s.runs.Load(), "runs")
		}
	},
	"H2 in flight, another payload": func(t *testing.T, d driver.Driver, g idem.Guarantee, http2 bool) {
		t.Helper()
		s := serve(t, d, g, http2)
		entered, leave := make(chan struct{}), make(chan struct{})
		s.handler = func(w http.ResponseWriter, _ *http.Request) { close(entered); <-leave; _, _ = w.Write([]byte("done")) }
		over := make(chan answer)
		go func() { a, _ := s.try(context.Background(), request{key: "k"}); over <- a }()
		<-entered
		code := "in_progress"
		if g == idem.AtMostOnce {
			code = "outcome_unknown"
		}
		a := s.send(request{key: "k"})
		a.wantProblem(t, http.StatusConflict, code)
		if a.header.Get("Retry-After") == "" || a.header.Get("Retry-After") == "0" {
			t.Errorf("Retry-After: %q", a.header.Get("Retry-After"))
		}
		a = s.send(request{key: "k", body: `{"amount":900}`})
		if g != idem.ExactlyOnce { // whose payload is seen only after the commit, but in this process it is known
			a.wantProblem(t, http.StatusUnprocessableEntity, "key_reused")
		}
		close(leave)
		if a := <-over; a.body != "done" {
			t.Errorf("%+v", a)
		}
		s.send(request{key: "k", body: `{"amount":900}`}).wantProblem(t, http.StatusUnprocessableEntity, "key_reused")
		if a := s.send(request{key: "k"}); a.body != "done" {
			t.Errorf("%+v", a)
		}
	},
	"H3 what is not final runs again": func(t *testing.T, d driver.Driver, g idem.Guarantee, http2 bool) {
		t.Helper()
		s := serve(t, d, g, http2)
		s.handler = func(w http.ResponseWriter, _ *http.Request) {
			if s.runs.Load()%2 == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			fmt.Fprint(w, s.runs.Load())
		}
		first, second := s.send(request{key: "k"}), s.send(request{key: "k"})
		want := answer{status: 200, body: "2"}
		if g == idem.AtMostOnce {
			want = answer{status: 503, body: "1"} // replayed: it never runs again
		}
		if first.status != 503 || second.status != want.status || second.body != want.body {
			t.Errorf("first %+v\nsecond %+v", first, second)
		}
	},
	"H5 a body over the limit": func(t *testing.T, d driver.Driver, g idem.Guarantee, http2 bool) {
		t.Helper()
		s := serve(t, d, g, http2, idemhttp.WithMaxResponse(1000))
		large := strings.Repeat("x", 5000)
		s.handler = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/payments/1")
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, large)
		}
		first, again := s.send(request{key: "k"}), s.send(request{key: "k"})
		if first.status != 201 || first.body != large || again.status != 201 || again.body != "" ||
			again.header.Get("Idempotency-Replayed") != "omitted" || again.header.Get("Location") != "/payments/1" || s.runs.Load() != 1 {
			t.Errorf("first %d, %d bytes\nagain %+v, %d runs", first.status, len(first.body), again, s.runs.Load())
		}
	},
	"H5 a flushed response": func(t *testing.T, d driver.Driver, g idem.Guarantee, http2 bool) {
		t.Helper()
		s := serve(t, d, g, http2)
		s.handler = func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "one,")
			if err := http.NewResponseController(w).Flush(); (err != nil) != (g == idem.ExactlyOnce) {
				t.Error("flush:", err)
			}
			_, _ = io.WriteString(w, "two")
		}
		first, again := s.send(request{key: "k"}), s.send(request{key: "k"})
		body, replayed := "", "omitted"
		if g == idem.ExactlyOnce {
			body, replayed = "one,two", "true"
		}
		if first.body != "one,two" || again.status != 200 || again.body != body || again.header.Get("Idempotency-Replayed") != replayed {
			t.Errorf("first %+v\nagain %+v", first, again)
		}
	},
	"H6 a client that disconnects": func(t *testing.T, d driver.Driver, g idem.Guarantee, http2 bool) {
		t.Helper()
		s := serve(t, d, g, http2)
		ctx, cancel := context.WithCancel(t.Context())
		returned := make(chan struct{})
		s.handler = func(w http.ResponseWriter, r *http.Request) {
			defer close(returned)
			cancel()
			<-r.Context().Done()
			_, _ = io.WriteString(w, "done")
		}
		_, _ = s.try(ctx, request{key: "k"}) // it may be told of its own end, or still get the answer
		<-returned
		a := s.send(request{key: "k"})
		for a.status == http.StatusConflict { // it is still being recorded
			time.Sleep(time.Millisecond)
			a = s.send(request{key: "k"})
		}
		if a.body != "done" || a.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%+v", a)
		}
	},
	"H7 a method that is safe": func(t *testing.T, d driver.Driver, g idem.Guarantee, http2 bool) {
		t.Helper()
		s := serve(t, d, g, http2)
		s.handler = func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, s.runs.Load()) }
		for want := range 3 {
			if a := s.send(request{method: http.MethodGet, key: "k"}); a.body != strconv.Itoa(want+1) {
				t.Errorf("%+v", a)
			}
		}
	},
	"H10 a panic": func(t *testing.T, d driver.Driver, g idem.Guarantee, http2 bool) {
		t.Helper()
		s := serve(t, d, g, http2)
		s.handler = func(w http.ResponseWriter, _ *http.Request) {
			if s.runs.Load() == 1 {
				w.Header().Set("Content-Length", "5")
				panic("bug")
			}
			_, _ = io.WriteString(w, "done")
		}
		if a := s.send(request{key: "k"}); a.status != 500 || !strings.Contains(a.body, "recovered bug") {
			t.Errorf("the panic did not go on: %+v", a)
		}
		a := s.send(request{key: "k"})
		if g == idem.AtMostOnce {
			a.wantProblem(t, http.StatusConflict, "outcome_unknown")
			if a.header.Get("Retry-After") != "" {
				t.Error("a final outcome has a Retry-After")
			}
			return
		}
		if a.body != "done" {
			t.Errorf("the retry did not run at once: %+v", a)
		}
	},
	"K6 two routes, one key": func(t *testing.T, d driver.Driver, g idem.Guarantee, http2 bool) {
		t.Helper()
		tenant := func(r *http.Request) (string, error) { return r.Header.Get("Tenant"), nil }
		s := serve(t, d, g, http2, idemhttp.WithPrincipal(tenant))
		s.handler = func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, s.runs.Load()) }
		for range 2 {
			n := 0
			for _, path := range []string{"/payments", "/refunds"} {
				for _, tenant := range []string{"a", "b"} {
					n++
					if a := s.send(request{path: path, key: "k", header: http.Header{"Tenant": {tenant}}}); a.body != strconv.Itoa(n) {
						t.Errorf("%s of %s: %+v, want %d", path, tenant, a, n)
					}
				}
			}
		}
		s.send(request{key: "k"}).wantProblem(t, http.StatusForbidden, "forbidden")
	},
}
