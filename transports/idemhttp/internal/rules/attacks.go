package rules

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"testing"

	"github.com/idem-go/idem/transports/idemhttp"
)

// attacks are what a hostile client may send, on every store.
var attacks = map[string]func(t *testing.T, s Setup){
	"attack: SQL and other languages in the key": func(t *testing.T, s Setup) {
		t.Helper()
		v := s.count(t)
		keys := []string{
			`'; DROP TABLE idem_records; --`, `' OR '1'='1`, `\'; SELECT 1`, `%`, `_`, `*`, `k?`, `[a-z]`, `$1`, `:key`, `{k}`, `}{`, `../../etc/passwd`,
			`${jndi:ldap://x}`, `<script>alert(1)</script>`, `k\u0000`, `0x00`, `KEYS[1]`,
		}
		for range 2 {
			for i, key := range keys {
				if a := v.Send(Request{Key: key}); a.Body != strconv.Itoa(i+1) {
					t.Errorf("%s: %+v, want %d", key, a, i+1)
				}
			}
		}
	},
	"attack: ten replays": func(t *testing.T, s Setup) {
		t.Helper()
		v := s.count(t)
		first := v.Send(Request{Key: "k"})
		for range 10 {
			if a := v.Send(Request{Key: "k"}); a.Status != first.Status || a.Body != first.Body || a.Header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("%+v, want %+v", a, first)
			}
		}
		if v.Runs.Load() != 1 {
			t.Error(v.Runs.Load(), "runs")
		}
	},
	"attack: a compressed body is what it is compressed": func(t *testing.T, s Setup) {
		t.Helper()
		v := s.count(t)
		echo := v.Handler
		v.Handler = func(w http.ResponseWriter, r *http.Request) {
			unzip, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			if plain, err := io.ReadAll(unzip); err != nil || len(plain) == 0 {
				t.Errorf("the handler reads %q, %v", plain, err)
			}
			echo(w, r)
		}
		zipped := http.Header{"Content-Encoding": {"gzip"}}
		first := v.Send(Request{Key: "k", Body: zip(t, `{"amount":500}`), Header: zipped})
		if a := v.Send(Request{Key: "k", Body: zip(t, `{"amount":500}`), Header: zipped}); a.Body != first.Body {
			t.Errorf("%+v, want %+v", a, first)
		}
		v.Send(Request{Key: "k", Body: zip(t, `{"amount":900}`), Header: zipped}).WantProblem(t, http.StatusUnprocessableEntity, "key_reused")
		v.Send(Request{Key: "k"}).WantProblem(t, http.StatusUnprocessableEntity, "key_reused") // nor is it its plain text
	},
	"attack: names of tenants that look like parts of others' keys": func(t *testing.T, s Setup) {
		t.Helper()
		v := s.count(t, idemhttp.WithPrincipal(func(r *http.Request) (string, error) { return r.Header.Get("Tenant"), nil }))
		pairs := [][2]string{
			{"a", "b"}, {"a:b", "b"}, {"a", "b:b"}, {"1:a", "b"}, {"a", "1:b"}, {"A", "b"}, {"a/", "b"}, {"a", "B"}, {"POST /payments", "b"},
		}
		for range 2 {
			for i, pair := range pairs {
				a := v.Send(Request{Key: pair[1], Header: http.Header{"Tenant": {pair[0]}}})
				if a.Body != strconv.Itoa(i+1) {
					t.Errorf("%q of %q: %+v, want %d", pair[1], pair[0], a, i+1)
				}
			}
		}
		// A tenant cannot find out whether another has used a key: a different payload runs.
		if a := v.Send(Request{Key: "b", Body: "1", Header: http.Header{"Tenant": {"c"}}}); a.Body != strconv.Itoa(len(pairs)+1) {
			t.Errorf("%+v", a)
		}
	},
}

// count serves a handler that answers which run it is.
func (s Setup) count(t *testing.T, opts ...idemhttp.Option) *Service {
	t.Helper()
	v := s.Serve(t, opts...)
	v.Handler = func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, v.Runs.Load()) }
	return v
}

func zip(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, text)
	must(t, err)
	must(t, w.Close())
	return b.String()
}
