package idemclient_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/idem-go/idem"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	"github.com/idem-go/idem/transports/idemhttp"
	idemclient "github.com/idem-go/idem/transports/idemhttp/client"
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(childEnv); spec != "" {
		serveChild(spec)
		return
	}
	goleak.VerifyTestMain(m)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// server counts what reaches it.
type server struct {
	*httptest.Server

	arrived atomic.Int64
	keys    chan string // of the requests that arrive
}

// serve starts a server.
func serve(t *testing.T, h http.Handler) *server {
	t.Helper()
	s := &server{keys: make(chan string, 100)}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.arrived.Add(1)
		s.keys <- r.Header.Get("Idempotency-Key")
		h.ServeHTTP(w, r)
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// protected is a handler behind the middleware, on a store in memory.
func protected(t *testing.T, g idem.Guarantee, fn http.HandlerFunc) http.Handler {
	t.Helper()
	store, err := idemmemory.New()
	must(t, err)
	op, err := idem.NewOperation("payments", store, g)
	must(t, err)
	protect, err := idemhttp.New(op, idemhttp.WithoutPrincipal(), idemhttp.WithLogger(slog.New(slog.DiscardHandler)))
	must(t, err)
	return protect(fn)
}

// newClient returns a client that does not wait long.
func newClient(t *testing.T, opts ...idemclient.Option) *http.Client {
	t.Helper()
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	transport, err := idemclient.NewTransport(base, append([]idemclient.Option{
		idemclient.WithBackOff(time.Millisecond, 10*time.Millisecond),
	}, opts...)...)
	must(t, err)
	return &http.Client{Transport: transport}
}

// onlyReader hides what http.NewRequest knows how to repeat.
type onlyReader struct{ io.Reader }

type answer struct {
	status int
	body   string
	header http.Header
}

func send(t *testing.T, c *http.Client, r *http.Request) (answer, error) {
	t.Helper()
	res, err := c.Do(r)
	if err != nil {
		return answer{}, err
	}
	body, err := io.ReadAll(res.Body)
	must(t, err)
	must(t, res.Body.Close())
	return answer{res.StatusCode, string(body), res.Header}, nil
}

func post(t *testing.T, url string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	must(t, err)
	return r
}

func payment() io.Reader { return strings.NewReader(`{"amount":500}`) }
