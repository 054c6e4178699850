package idemhttp_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/transports/idemhttp"
	"github.com/idem-go/idem/transports/idemhttp/internal/rules"
)

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
	s := onMemory.Serve(t, idemhttp.WithMaxBody(3<<20))
	s.Handler = func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }
	long := strings.Repeat("x", 1<<20)
	octets := http.Header{"Content-Type": {"application/octet-stream"}}
	s.Send(rules.Request{Key: "k", Body: long + "a", Header: octets})
	s.Send(rules.Request{Key: "k", Body: long + "b", Header: octets}).WantProblem(t, http.StatusUnprocessableEntity, "key_reused")
	s.Send(rules.Request{Key: "k2", Body: strings.Repeat(long, 3) + "x"}).WantProblem(t, http.StatusRequestEntityTooLarge, "body_too_large")
	s.Send(rules.Request{Key: "k3", Body: `{"a":1,"a":2}`})
	s.Send(rules.Request{Key: "k3", Body: `{"a":2,"a":1}`}).WantProblem(t, http.StatusUnprocessableEntity, "key_reused")
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

func TestRouteIsThePatternInsideAMuxAndThePathOutside(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		build func(protect rules.Middleware, fn http.Handler) http.Handler
		other int // the status of the key on another path of the pattern
	}{
		"inside": {func(protect rules.Middleware, fn http.Handler) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("POST /payments/{id}", protect(fn))
			return mux
		}, http.StatusUnprocessableEntity},
		"outside": {func(protect rules.Middleware, fn http.Handler) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("POST /payments/{id}", fn)
			return protect(mux)
		}, http.StatusOK},
	} {
		s := onMemory
		s.Build = row.build
		v := s.Serve(t)
		v.Handler = func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.PathValue("id")) }
		if a := v.Send(rules.Request{Path: "/payments/1", Key: "k"}); a.Body != "1" {
			t.Errorf("%s: %+v", name, a)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/payments/1", nil)
		if r.Pattern = "POST /payments/{id}"; name == "outside" {
			r.Pattern = ""
		}
		if _, ok, err := v.Op.Inspect(t.Context(), "k", idemhttp.KeyOptions(r, "")...); !ok || err != nil {
			t.Errorf("%s: an operator does not find the record: %v", name, err)
		}
		if a := v.Send(rules.Request{Path: "/payments/2", Key: "k"}); a.Status != row.other {
			t.Errorf("%s: %+v, want %d", name, a, row.other)
		}
	}
}
