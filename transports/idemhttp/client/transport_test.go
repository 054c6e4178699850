package idemclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	idemclient "github.com/idem-go/idem/transports/idemhttp/client"
)

// hangUp ends the connection without an answer.
func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// failing answers by the handlers in turn, then with 201 and the body that it has read.
func failing(handlers ...http.HandlerFunc) http.HandlerFunc {
	var n atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if i := int(n.Add(1)); i <= len(handlers) {
			handlers[i-1](w, r)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
	}
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, line := range header {
			name, value, _ := strings.Cut(line, ": ")
			w.Header().Set(name, value)
		}
		w.WriteHeader(code)
	}
}

func TestRequestIsRepeatedWithItsKeyUntilThereIsAnAnswer(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]io.Reader{
		"with GetBody": payment(), "without GetBody": onlyReader{payment()}, "without a body": nil, "with an empty one": http.NoBody,
	} {
		s := serve(t, failing(hangUp, status(425), status(429), status(502)))
		a, err := send(t, newClient(t), post(t, s.URL, body))
		must(t, err)
		want := `{"amount":500}`
		if strings.HasSuffix(name, "empty one") || strings.HasSuffix(name, "without a body") {
			want = ""
		}
		if a.status != http.StatusCreated || a.body != want || s.arrived.Load() != 5 {
			t.Errorf("%s: %+v after %d tries", name, a, s.arrived.Load())
		}
		first := <-s.keys
		for range 4 {
			if key := <-s.keys; key != first || len(key) < 20 {
				t.Errorf("%s: the keys are %q and %q", name, first, key)
			}
		}
	}
}

func TestEveryRequestHasAKeyOfItsOwnUnlessTheCallerGivesOne(t *testing.T) {
	t.Parallel()
	s := serve(t, failing())
	c := newClient(t)
	for range 2 {
		_, err := send(t, c, post(t, s.URL, nil))
		must(t, err)
	}
	if a, b := <-s.keys, <-s.keys; a == b || a == "" {
		t.Errorf("%q and %q", a, b)
	}
	r := post(t, s.URL, nil).WithContext(idemclient.ContextWithKey(t.Context(), "of the context"))
	_, err := send(t, c, r)
	must(t, err)
	r.Header.Set("Idempotency-Key", `"of the header"`)
	_, err = send(t, c, r)
	must(t, err)
	if a, b := <-s.keys, <-s.keys; a != "of the context" || b != `"of the header"` {
		t.Errorf("%q, %q", a, b)
	}
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions} {
		r := post(t, s.URL, nil)
		r.Method = method
		_, err := send(t, c, r)
		must(t, err)
		if key := <-s.keys; key != "" {
			t.Errorf("%s has the key %q", method, key)
		}
	}
}

func TestKeyThatIsNoneIsRefusedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	s := serve(t, failing())
	for _, key := range []string{"", " ", "a\nb", "ä", strings.Repeat("k", 256)} {
		r := post(t, s.URL, nil).WithContext(idemclient.ContextWithKey(t.Context(), key))
		if _, err := send(t, newClient(t), r); err == nil || !strings.Contains(err.Error(), "printable ASCII") {
			t.Errorf("%q: %v", key, err)
		}
	}
	r := post(t, s.URL, nil)
	r.Header["Idempotency-Key"] = []string{"a", "b"}
	if _, err := send(t, newClient(t), r); err == nil || s.arrived.Load() != 0 {
		t.Error(err, s.arrived.Load())
	}
}

func TestWhatWouldBeAnsweredAlikeIsNotRepeated(t *testing.T) {
	t.Parallel()
	for name, answered := range map[string]http.HandlerFunc{
		"400": status(400, "Retry-After: 1"), "401": status(401), "404": status(404), "422": status(422, "Retry-After: 1"), "500": status(500),
		"409, and no word of coming back": status(409),
		"a stored 503":                    status(503, "Idempotency-Replayed: true"),
		"a stored 409":                    status(409, "Idempotency-Replayed: true", "Retry-After: 0"),
	} {
		s := serve(t, failing(answered))
		a, err := send(t, newClient(t), post(t, s.URL, payment()))
		must(t, err)
		if s.arrived.Load() != 1 || a.status == http.StatusCreated {
			t.Errorf("%s: %+v after %d tries", name, a, s.arrived.Load())
		}
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	date := func(w http.ResponseWriter, _ *http.Request) {
		server := time.Now().Add(-time.Hour) // whose clock is late
		w.Header().Set("Date", server.UTC().Format(http.TimeFormat))
		w.Header().Set("Retry-After", server.Add(time.Second).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	for name, answered := range map[string]http.HandlerFunc{"seconds": status(503, "Retry-After: 1"), "a date": date} {
		s := serve(t, failing(answered))
		began := time.Now()
		a, err := send(t, newClient(t), post(t, s.URL, payment()))
		must(t, err)
		if took := time.Since(began); a.status != http.StatusCreated || took < time.Second {
			t.Errorf("%s: %+v after %v", name, a, took)
		}
	}
}

func TestLastAnswerIsReturnedWhenTriesOrTimeAreOver(t *testing.T) {
	t.Parallel()
	always := make([]http.HandlerFunc, 100)
	for i := range always {
		always[i] = func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, "down")
		}
	}
	s := serve(t, failing(always...))
	if a, err := send(t, newClient(t, idemclient.WithMaxTries(3)), post(t, s.URL, payment())); err != nil || a.body != "down" || s.arrived.Load() != 3 {
		t.Errorf("%+v, %v after %d tries", a, err, s.arrived.Load())
	}
	s = serve(t, failing(status(503, "Retry-After: 30")))
	short := idemclient.WithMaxElapsedTime(time.Second)
	if a, err := send(t, newClient(t, short), post(t, s.URL, payment())); err != nil || a.status != http.StatusServiceUnavailable {
		t.Errorf("%+v, %v", a, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s = serve(t, failing(status(503, "Retry-After: 30")))
	if a, err := send(t, newClient(t), post(t, s.URL, payment()).WithContext(ctx)); err != nil || a.status != http.StatusServiceUnavailable {
		t.Errorf("the caller has less time than the server wants: %+v, %v", a, err)
	}
}

func TestServerThatWantsToBeLeftAloneForLongIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	s := serve(t, failing(status(503, "Retry-After: 1")))
	c := newClient(t, idemclient.WithMaxRetryAfter(999*time.Millisecond))
	if a, err := send(t, c, post(t, s.URL, payment())); err != nil || a.status != http.StatusServiceUnavailable || s.arrived.Load() != 1 {
		t.Errorf("%+v, %v after %d tries", a, err, s.arrived.Load())
	}
}

func TestCallersEndIsTheEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := serve(t, failing(func(w http.ResponseWriter, _ *http.Request) {
		status(503, "Retry-After: 30")(w, nil)
		time.AfterFunc(10*time.Millisecond, cancel)
	}))
	if _, err := send(t, newClient(t), post(t, s.URL, payment()).WithContext(ctx)); !errors.Is(err, context.Canceled) || s.arrived.Load() != 1 {
		t.Error(err, s.arrived.Load())
	}
}

func TestBodyThatIsTooLongToCopyIsSentOnce(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1000)
	for name, row := range map[string]struct {
		limit int64
		body  io.Reader
		tries int64
	}{
		"within the limit":       {1000, onlyReader{strings.NewReader(long)}, 2},
		"over it":                {999, onlyReader{strings.NewReader(long)}, 1},
		"no copies":              {0, onlyReader{strings.NewReader(long)}, 1},
		"one that needs no copy": {0, strings.NewReader(long), 2},
	} {
		read := ""
		s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			read = string(body)
			w.WriteHeader(http.StatusServiceUnavailable)
		}))
		c := newClient(t, idemclient.WithMaxBody(row.limit), idemclient.WithMaxTries(2))
		a, err := send(t, c, post(t, s.URL, row.body))
		if err != nil || a.status != http.StatusServiceUnavailable || s.arrived.Load() != row.tries || read != long {
			t.Errorf("%s: %+v, %v after %d tries of %d bytes", name, a, err, s.arrived.Load(), len(read))
		}
	}
	s := serve(t, http.HandlerFunc(hangUp))
	c := newClient(t, idemclient.WithMaxBody(0))
	if _, err := send(t, c, post(t, s.URL, onlyReader{payment()})); err == nil || s.arrived.Load() != 1 {
		t.Error(err, s.arrived.Load())
	}
}

func TestBodyIsClosedWhateverHappens(t *testing.T) {
	t.Parallel()
	s := serve(t, failing(hangUp, status(503)))
	for name, row := range map[string]struct {
		body io.Reader
		key  string
		max  int64
	}{
		"copied": {payment(), "k", 100}, "too long": {payment(), "k", 1}, "a key that is none": {payment(), " ", 100},
		"it cannot be read": {brokenReader{}, "k", 100},
	} {
		body := &closer{Reader: row.body}
		r := post(t, s.URL, body).WithContext(idemclient.ContextWithKey(t.Context(), row.key))
		_, _ = send(t, newClient(t, idemclient.WithMaxBody(row.max)), r)
		if !body.closed.Load() {
			t.Errorf("%s: the body is open", name)
		}
	}
}

type closer struct {
	io.Reader

	closed atomic.Bool
}

func (c *closer) Close() error { c.closed.Store(true); return nil }

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestRedirectKeepsTheKey(t *testing.T) {
	t.Parallel()
	target := serve(t, failing())
	s := serve(t, http.RedirectHandler(target.URL, http.StatusTemporaryRedirect))
	a, err := send(t, newClient(t), post(t, s.URL, payment()))
	if first, second := <-s.keys, <-target.keys; err != nil || a.status != http.StatusCreated || first != second {
		t.Errorf("%+v, %v: %q and %q", a, err, first, second)
	}
}

func TestConcurrentCallersOfOneKeyHaveOneEffectAndAllAnAnswer(t *testing.T) {
	t.Parallel()
	var effects atomic.Int64
	s := serve(t, impatient(protected(t, idem.AtLeastOnce, func(w http.ResponseWriter, _ *http.Request) {
		n := effects.Add(1)
		time.Sleep(100 * time.Millisecond) // so that the others find it in progress
		fmt.Fprint(w, n)
	})))
	c := newClient(t)
	answers := make(chan answer)
	for range 5 {
		go func() {
			a, err := send(t, c, post(t, s.URL, payment()).WithContext(idemclient.ContextWithKey(t.Context(), "k")))
			if err != nil {
				t.Error(err)
			}
			answers <- a
		}()
	}
	for range 5 {
		if a := <-answers; a.status != http.StatusOK || a.body != "1" {
			t.Errorf("%+v", a)
		}
	}
	if effects.Load() != 1 {
		t.Error(effects.Load(), "effects")
	}
}

// impatient shortens a Retry-After of 30 s, for the test's sake.
func impatient(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(impatientWriter{w}, r) })
}

type impatientWriter struct{ http.ResponseWriter }

func (w impatientWriter) WriteHeader(status int) {
	if w.Header().Get("Retry-After") != "" {
		w.Header().Set("Retry-After", "1")
	}
	w.ResponseWriter.WriteHeader(status)
}

func TestMismatchAndMissingAnswersComeBackAtOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, protected(t, idem.AtMostOnce, func(http.ResponseWriter, *http.Request) {}))
	c := newClient(t)
	ctx := idemclient.ContextWithKey(t.Context(), "k")
	_, err := send(t, c, post(t, s.URL, payment()).WithContext(ctx))
	must(t, err)
	if a, err := send(t, c, post(t, s.URL, strings.NewReader("900")).WithContext(ctx)); err != nil || a.status != http.StatusUnprocessableEntity {
		t.Errorf("%+v, %v", a, err)
	}
	if s.arrived.Load() != 2 {
		t.Error(s.arrived.Load(), "tries")
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]idemclient.Option{
		"leave it out":                nil,
		"WithMaxTries(0)":             idemclient.WithMaxTries(0),
		"30*time.Second, not 30":      idemclient.WithMaxElapsedTime(30),
		"WithMaxRetryAfter(0s)":       idemclient.WithMaxRetryAfter(0),
		"the longest wait is shorter": idemclient.WithBackOff(time.Second, time.Millisecond),
		"WithBackOff(1ns)":            idemclient.WithBackOff(1, 2),
		"WithMaxBody(-1)":             idemclient.WithMaxBody(-1),
		"a header needs a name":       idemclient.WithHeaderNames("", "x"),
	} {
		if _, err := idemclient.NewTransport(nil, o); err == nil || !strings.HasPrefix(err.Error(), "idemclient: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
