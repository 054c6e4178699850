package idemhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	"github.com/idem-go/idem/transports/idemhttp"
)

func memory(t *testing.T) driver.Driver {
	t.Helper()
	s, err := idemmemory.New()
	must(t, err)
	return s
}

// local calls a protected handler without a socket, with exactly the header lines that are given.
func local(t *testing.T, opts ...idemhttp.Option) (call func(lines ...string) *httptest.ResponseRecorder, runs *int) {
	t.Helper()
	op, err := idem.NewOperation("payments", memory(t), idem.AtLeastOnce)
	must(t, err)
	protect, err := idemhttp.New(op, append([]idemhttp.Option{idemhttp.WithoutPrincipal()}, opts...)...)
	must(t, err)
	runs = new(int)
	h := protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { *runs++ }))
	return func(lines ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/payments", strings.NewReader("x"))
		if len(lines) > 0 {
			r.Header["Idempotency-Key"] = lines
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}, runs
}

func TestMalformedKeysAreRefusedAndNothingRuns(t *testing.T) { // CASES H2
	t.Parallel()
	call, runs := local(t)
	for _, lines := range [][]string{
		{}, {""}, {" "}, {`""`}, {`"  "`}, {"a", "b"}, {"a", "a"}, {"a, b"}, {`"a`}, {`a"b`}, {`"a"b"`}, {`"a\n"`}, {`"a";p=1`},
		{"a\x00b"}, {"a\r\nSet-Cookie: x"}, {"ä"}, {`"ä"`}, {strings.Repeat("k", 256)}, {`"` + strings.Repeat("k", 256) + `"`},
		{strings.Repeat("k", 10<<20)},
	} {
		if w := call(lines...); w.Code != http.StatusBadRequest || *runs != 0 {
			t.Errorf("%.40q: %d %s", lines, w.Code, w.Body)
		}
	}
}

func TestQuotedAndBareKeyAreOne(t *testing.T) { // CASES H8
	t.Parallel()
	call, runs := local(t)
	for _, line := range []string{`abc`, `"abc"`, ` abc `, `"abc"`} {
		if w := call(line); w.Code != http.StatusOK || *runs != 1 {
			t.Errorf("%q: %d, %d runs", line, w.Code, *runs)
		}
	}
	for _, line := range []string{`"a, b"`, `"a\"b"`, `"a\\b"`, `'; DROP TABLE idem_records; --`, strings.Repeat("k", 255)} {
		if w := call(line); w.Code != http.StatusOK {
			t.Errorf("%q: %d", line, w.Code)
		}
	}
	strict, runs := local(t, idemhttp.WithStrictKey())
	if w := strict(`"abc"`); w.Code != http.StatusOK || *runs != 1 {
		t.Error("strict refuses a quoted key:", w.Code)
	}
	if w := strict(`abc`); w.Code != http.StatusBadRequest || *runs != 1 {
		t.Error("strict takes a bare key:", w.Code)
	}
}

func TestOptionalKeyPassesThrough(t *testing.T) {
	t.Parallel()
	call, runs := local(t, idemhttp.WithOptionalKey())
	for range 2 {
		call()
	}
	if w := call("a", "b"); *runs != 2 || w.Code != http.StatusBadRequest {
		t.Error(*runs, w.Code)
	}
}

func TestKeyFromElsewhere(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		f    idemhttp.KeyFunc
		url  string
		body string
		want int
	}{
		"query":         {idemhttp.KeyFromQuery("key"), "/p?key=k-1", "", 200},
		"two in query":  {idemhttp.KeyFromQuery("key"), "/p?key=a&key=b", "", 400},
		"none in query": {idemhttp.KeyFromQuery("key"), "/p", "", 400},
		"form":          {idemhttp.KeyFromForm("key"), "/p", "key=k-1&amount=5", 200},
		"none in form":  {idemhttp.KeyFromForm("key"), "/p?key=k-1", "amount=5", 400},
		"function":      {func(*http.Request) (string, error) { return "", errors.New("secret") }, "/p", "", 400},
		"too long":      {func(*http.Request) (string, error) { return strings.Repeat("k", 300), nil }, "/p", "", 400},
	} {
		op, err := idem.NewOperation("payments", memory(t), idem.AtLeastOnce)
		must(t, err)
		protect, err := idemhttp.New(op, idemhttp.WithKey(row.f), idemhttp.WithoutPrincipal())
		must(t, err)
		seen := ""
		h := protect(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			all, _ := io.ReadAll(r.Body)
			seen = string(all)
		}))
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, row.url, strings.NewReader(row.body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != row.want || strings.Contains(w.Body.String(), "secret") || row.want == 200 && seen != row.body {
			t.Errorf("%s: %d %s, the handler read %q", name, w.Code, w.Body, seen)
		}
	}
}

func TestBodyIsTheFingerprintToItsLastByte(t *testing.T) {
	t.Parallel()
	s := serve(t, memory(t), idem.AtLeastOnce, false, idemhttp.WithMaxBody(3<<20))
	s.handler = func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }
	long := strings.Repeat("x", 1<<20)
	octets := http.Header{"Content-Type": {"application/octet-stream"}}
	s.send(request{key: "k", body: long + "a", header: octets})
	s.send(request{key: "k", body: long + "b", header: octets}).wantProblem(t, http.StatusUnprocessableEntity, "key_reused")
	s.send(request{key: "k2", body: strings.Repeat(long, 3) + "x"}).wantProblem(t, http.StatusRequestEntityTooLarge, "body_too_large")
	s.send(request{key: "k3", body: `{"a":1,"a":2}`})
	s.send(request{key: "k3", body: `{"a":2,"a":1}`}).wantProblem(t, http.StatusUnprocessableEntity, "key_reused")
	gzipped := http.Header{"Content-Encoding": {"gzip"}}
	s.send(request{key: "k4", body: "\x1f\x8b{}", header: gzipped})
	s.send(request{key: "k4", body: "\x1f\x8b{ }", header: gzipped}).wantProblem(t, http.StatusUnprocessableEntity, "key_reused")
}

func TestBodyReadBeforeIsStillTheFingerprint(t *testing.T) { // CASES H7
	t.Parallel()
	op, err := idem.NewOperation("payments", memory(t), idem.AtLeastOnce)
	must(t, err)
	protect, err := idemhttp.New(op, idemhttp.WithoutPrincipal(), idemhttp.WithLogger(quiet))
	must(t, err)
	h := protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.PostForm.Get("amount")) }))
	call := func(body string, before func(*http.Request)) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/p", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Idempotency-Key", "k")
		before(r)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	parse := func(r *http.Request) { must(t, r.ParseForm()) }
	if w := call("amount=500", parse); w.Body.String() != "500" {
		t.Error(w.Code, w.Body)
	}
	if w := call("amount=900", parse); w.Code != http.StatusUnprocessableEntity {
		t.Error(w.Code, w.Body)
	}
	if w := call("amount=500", func(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }); w.Code != http.StatusInternalServerError {
		t.Error("a consumed body:", w.Code, w.Body)
	}
}

func TestStoreThatIsDownIsAnsweredAndTheHandlerDoesNotRun(t *testing.T) { // CASES H9
	t.Parallel()
	s := serve(t, &down{memory(t)}, idem.AtLeastOnce, false)
	s.handler = func(http.ResponseWriter, *http.Request) {}
	a := s.send(request{key: "k"})
	a.wantProblem(t, http.StatusServiceUnavailable, "store_unavailable")
	if s.runs.Load() != 0 || a.header.Get("Retry-After") != "1" || strings.Contains(a.body, "secret") {
		t.Errorf("%d runs, %+v", s.runs.Load(), a)
	}
}

type down struct{ driver.Driver }

func (down) Claim(context.Context, driver.ClaimParams) (driver.ClaimResult, error) {
	return driver.ClaimResult{}, errors.New("secret host is down")
}
