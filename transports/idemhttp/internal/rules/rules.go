package rules

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

// Run runs all rules, attacks and the table of answers.
func (s Setup) Run(t *testing.T) {
	if d := s.Open(t); !d.Capabilities().SingleWriter { // else a run would hold up the other rules
		s.Open = func(*testing.T) driver.Driver { return d }
	}
	tables := []map[string]func(*testing.T, Setup){rules, attacks}
	if s.HTTP2 {
		tables = append(tables, slow)
	}
	for _, table := range tables {
		for name, rule := range table {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				rule(t, s)
			})
		}
	}
	for _, row := range Answers {
		if !row.on(s.Guarantee) {
			continue
		}
		t.Run("answer to: "+row.Situation, func(t *testing.T) {
			t.Parallel()
			row.check(t, row.do(t, s))
		})
	}
}

// rules are CASES H, K and L by number. H3, H6, H10, K6 and L3 are what other middlewares are known to get wrong.
var rules = map[string]func(t *testing.T, s Setup){
	"H1 a duplicate gets the stored response": func(t *testing.T, s Setup) {
		t.Helper()
		v := s.Serve(t, idemhttp.WithRollback(func(status int) bool { return status >= 500 }))
		for _, status := range []int{201, 404, 402} {
			v.Handler = func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				w.Header()["Link"] = []string{`</a>; rel="next", </b>`, "</c>"}
				w.Header().Set("Location", "/payments/1")
				w.Header().Set("Set-Cookie", "session=1")
				w.Header().Set("X-Trace", "1")
				w.WriteHeader(status)
				fmt.Fprintf(w, "%s\x00\xff", body)
			}
			key := fmt.Sprint("h1-", status)
			first := v.Send(Request{Key: key})
			again := v.Send(Request{Key: key, Body: `{ "amount" : 5e2 }`})
			if first.Status != status || again.Status != status || first.Body != again.Body || first.Body != "{\"amount\":500}\x00\xff" ||
				!slices.Equal(again.Header["Link"], first.Header["Link"]) || len(again.Header["Link"]) != 2 ||
				again.Header.Get("Location") != "/payments/1" {
				t.Errorf("first %+v\nagain %+v", first, again)
			}
			if first.Header.Get("Idempotency-Replayed") != "" || again.Header.Get("Idempotency-Replayed") != "true" ||
				again.Header.Get("Idempotency-Key") != key || first.Header.Get("Idempotency-Key") != key {
				t.Errorf("first %v\nagain %v", first.Header, again.Header)
			}
			if first.Header.Get("Set-Cookie") == "" || again.Header.Get("Set-Cookie") != "" || again.Header.Get("X-Trace") != "" {
				t.Errorf("H4: first %v\nagain %v", first.Header, again.Header)
			}
			if again.Header.Get("Content-Type") != first.Header.Get("Content-Type") {
				t.Errorf("the type is %q, then %q", first.Header.Get("Content-Type"), again.Header.Get("Content-Type"))
			}
		}
		if v.Runs.Load() != 3 {
			t.Error(v.Runs.Load(), "runs")
		}
	},
	"H2 in flight, another payload": func(t *testing.T, s Setup) {
		t.Helper()
		v := s.Serve(t)
		finish := v.Begin(Request{Key: "k"})
		code := "in_progress"
		if s.Guarantee == idem.AtMostOnce {
			code = "outcome_unknown"
		}
		a := v.Send(Request{Key: "k"})
		a.WantProblem(t, http.StatusConflict, code)
		if a.Header.Get("Retry-After") == "" || a.Header.Get("Retry-After") == "0" {
			t.Errorf("Retry-After: %q", a.Header.Get("Retry-After"))
		}
		a = v.Send(Request{Key: "k", Body: `{"amount":900}`})
		if s.Guarantee != idem.ExactlyOnce { // whose payload is seen only after the commit, but in this process it is known
			a.WantProblem(t, http.StatusUnprocessableEntity, "key_reused")
		}
		if a := finish(); a.Body != "done" {
			t.Errorf("%+v", a)
		}
		v.Send(Request{Key: "k", Body: `{"amount":900}`}).WantProblem(t, http.StatusUnprocessableEntity, "key_reused")
		if a := v.Send(Request{Key: "k"}); a.Body != "done" {
			t.Errorf("%+v", a)
		}
	},
	"H3 one 503 and then a retry runs again": func(t *testing.T, s Setup) {
		t.Helper()
		v := s.Serve(t)
		v.Handler = func(w http.ResponseWriter, _ *http.Request) {
			if v.Runs.Load()%2 == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			fmt.Fprint(w, v.Runs.Load())
		}
		first, second := v.Send(Request{Key: "k"}), v.Send(Request{Key: "k"})
		want := Answer{Status: 200, Body: "2"}
		if s.Guarantee == idem.AtMostOnce {
			want = Answer{Status: 503, Body: "1"} // replayed: it never runs again
		}
		if first.Status != 503 || second.Status != want.Status || second.Body != want.Body {
			t.Errorf("first %+v\nsecond %+v", first, second)
		}
	},
	"H5 a body over the limit": func(t *testing.T, s Setup) {
		t.Helper()
		v := s.Serve(t, idemhttp.WithMaxResponse(1000))
		large := strings.Repeat("x", 5000)
		v.Handler = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/payments/1")
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, large)
		}
		first, again := v.Send(Request{Key: "k"}), v.Send(Request{Key: "k"})
		if first.Status != 201 || first.Body != large || again.Status != 201 || again.Body != "" ||
			again.Header.Get("Idempotency-Replayed") != "omitted" || again.Header.Get("Location") != "/payments/1" || v.Runs.Load() != 1 {
			t.Errorf("first %d, %d bytes\nagain %+v, %d runs", first.Status, len(first.Body), again, v.Runs.Load())
		}
	},
	"H5 a flushed response": func(t *testing.T, s Setup) {
		t.Helper()
		v := s.Serve(t)
		v.Handler = func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "one,")
			if err := http.NewResponseController(w).Flush(); (err != nil) != (s.Guarantee == idem.ExactlyOnce) {
				t.Error("flush:", err)
			}
			_, _ = io.WriteString(w, "two")
		}
		first, again := v.Send(Request{Key: "k"}), v.Send(Request{Key: "k"})
		body, replayed := "", "omitted"
		if s.Guarantee == idem.ExactlyOnce {
			body, replayed = "one,two", "true"
		}
		if first.Body != "one,two" || again.Status != 200 || again.Body != body || again.Header.Get("Idempotency-Replayed") != replayed {
			t.Errorf("first %+v\nagain %+v", first, again)
		}
	},
	"H6 a client that disconnects gets its result replayed": func(t *testing.T, s Setup) {
		t.Helper()
		v := s.Serve(t)
		ctx, cancel := context.WithCancel(t.Context())
		returned := make(chan struct{})
		v.Handler = func(w http.ResponseWriter, r *http.Request) {
			defer close(returned)
			cancel()
			<-r.Context().Done()
			_, _ = io.WriteString(w, "done")
		}
		_, _ = v.Try(ctx, Request{Key: "k"}) // it may be told of its own end, or still get the answer
		<-returned
		a := v.Send(Request{Key: "k"})
		for began := time.Now(); a.Status == http.StatusConflict && time.Since(began) < time.Minute; { // it is still being recorded
			time.Sleep(time.Millisecond)
			a = v.Send(Request{Key: "k"})
		}
		if a.Body != "done" || a.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%+v", a)
		}
	},
	"H7 a method that is safe": func(t *testing.T, s Setup) {
		t.Helper()
		v := s.Serve(t)
		v.Handler = func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, v.Runs.Load()) }
		for want := range 3 {
			if a := v.Send(Request{Method: http.MethodGet, Key: "k"}); a.Body != strconv.Itoa(want+1) {
				t.Errorf("%+v", a)
			}
		}
	},
	"H10 one panic and then a retry runs at once": func(t *testing.T, s Setup) {
		t.Helper()
		v := s.Serve(t)
		v.Handler = func(w http.ResponseWriter, _ *http.Request) {
			if v.Runs.Load() == 1 {
				w.Header().Set("Content-Length", "5")
				panic("bug")
			}
			_, _ = io.WriteString(w, "done")
		}
		if a := v.Send(Request{Key: "k"}); a.Status != 500 || !strings.Contains(a.Body, "recovered bug") {
			t.Errorf("the panic did not go on: %+v", a)
		}
		a := v.Send(Request{Key: "k"})
		if s.Guarantee == idem.AtMostOnce {
			a.WantProblem(t, http.StatusConflict, "outcome_unknown")
			if a.Header.Get("Retry-After") != "" {
				t.Error("a final outcome has a Retry-After")
			}
			return
		}
		if a.Body != "done" {
			t.Errorf("the retry did not run at once: %+v", a)
		}
	},
	"K6 the same key with another body is 422, on another route or of another tenant it runs": func(t *testing.T, s Setup) {
		t.Helper()
		tenant := func(r *http.Request) (string, error) { return r.Header.Get("Tenant"), nil }
		v := s.Serve(t, idemhttp.WithPrincipal(tenant))
		v.Handler = func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, v.Runs.Load()) }
		for range 2 {
			n := 0
			for _, path := range []string{"/payments", "/refunds"} {
				for _, tenant := range []string{"a", "b"} {
					n++
					if a := v.Send(Request{Path: path, Key: "k", Header: http.Header{"Tenant": {tenant}}}); a.Body != strconv.Itoa(n) {
						t.Errorf("%s of %s: %+v, want %d", path, tenant, a, n)
					}
				}
			}
		}
		other := Request{Key: "k", Body: `{"amount":900}`, Header: http.Header{"Tenant": {"a"}}}
		v.Send(other).WantProblem(t, http.StatusUnprocessableEntity, "key_reused")
		v.Send(Request{Key: "k"}).WantProblem(t, http.StatusForbidden, "forbidden")
	},
}

// slow rules take seconds, so they are run over one protocol alone.
var slow = map[string]func(t *testing.T, s Setup){
	"L3 a handler that outlives its lease, with a duplicate waiting, runs once": func(t *testing.T, s Setup) {
		t.Helper()
		const lease = time.Second
		opts := []idem.OperationOption{idem.WithWait(time.Minute)}
		if s.Guarantee != idem.ExactlyOnce { // which has none
			opts = append(opts, idem.WithLeaseTTL(lease))
		}
		v := s.with(opts...).Serve(t)
		finish := v.Begin(Request{Key: "k"})
		over := make(chan Answer)
		go func() { a, _ := v.Try(context.Background(), Request{Key: "k"}); over <- a }()
		time.Sleep(3 * lease / 2)
		if first, duplicate := finish(), <-over; first.Body != "done" || duplicate.Body != "done" {
			t.Errorf("first %+v\nduplicate %+v", first, duplicate)
		}
		if v.Runs.Load() != 1 {
			t.Error(v.Runs.Load(), "runs")
		}
	},
}
