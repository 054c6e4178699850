package rules

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	"github.com/idem-go/idem/transports/idemhttp"
)

// Middleware is what idemhttp.New returns.
type Middleware = func(http.Handler) http.Handler

// Setup is what the rules run on.
type Setup struct {
	Open      func(t *testing.T) driver.Driver
	Guarantee idem.Guarantee
	HTTP2     bool

	// Build returns a handler that serves /payments and /refunds, all methods, by fn behind protect. Nil: the standard mux.
	Build func(protect Middleware, fn http.Handler) http.Handler

	// Options of the operation, besides the rule's.
	Options []idem.OperationOption
}

func (s Setup) with(opts ...idem.OperationOption) Setup {
	s.Options = append(slices.Clone(s.Options), opts...)
	return s
}

func inStandardMux(protect Middleware, fn http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/payments", protect(fn))
	mux.Handle("/refunds", protect(fn))
	return mux
}

var quiet = slog.New(slog.DiscardHandler)

// Service is a server whose handler can be changed.
type Service struct {
	URL     string
	Client  *http.Client
	Op      *idem.Operation
	Runs    atomic.Int64
	Handler http.HandlerFunc

	t     *testing.T
	http2 bool
}

// Serve starts a server for the test.
func (s Setup) Serve(t *testing.T, opts ...idemhttp.Option) *Service {
	t.Helper()
	opts = append([]idemhttp.Option{idemhttp.WithoutPrincipal(), idemhttp.WithLogger(quiet)}, opts...)
	ofOp := append([]idem.OperationOption{idem.WithLogger(quiet), idem.WithKeySpace(t.Name())}, s.Options...)
	op, err := idem.NewOperation("payments", s.Open(t), s.Guarantee, ofOp...)
	must(t, err)
	service := &Service{t: t, http2: s.HTTP2, Op: op}
	protect, err := idemhttp.New(op, opts...)
	must(t, err)
	build := s.Build
	if build == nil {
		build = inStandardMux
	}
	server := httptest.NewUnstartedServer(recoverer(build(protect, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		service.Runs.Add(1)
		service.Handler(w, r)
	}))))
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!s.HTTP2)
	protocols.SetUnencryptedHTTP2(s.HTTP2)
	server.Config.Protocols = protocols
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.Start()
	t.Cleanup(server.Close)
	transport := &http.Transport{Protocols: protocols}
	t.Cleanup(transport.CloseIdleConnections)
	service.URL, service.Client = server.URL, &http.Client{Transport: transport}
	service.Client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return service
}

// recoverer is an outer middleware that answers panics.
func recoverer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				http.Error(w, fmt.Sprint("recovered ", p), http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// Request is a POST /payments of {"amount":500} as JSON, unless changed.
type Request struct {
	Method, Path, Key, Body string
	Header                  http.Header
}

// Answer is what a client got.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Send sends the request; without an answer the test ends.
func (s *Service) Send(q Request) Answer {
	s.t.Helper()
	a, err := s.Try(s.t.Context(), q)
	must(s.t, err)
	return a
}

// Try sends the request.
func (s *Service) Try(ctx context.Context, q Request) (Answer, error) {
	body := orElse(q.Body, `{"amount":500}`)
	r, err := http.NewRequestWithContext(ctx, orElse(q.Method, http.MethodPost), s.URL+orElse(q.Path, "/payments"), strings.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	if q.Key != "" {
		r.Header.Set("Idempotency-Key", q.Key)
	}
	maps.Copy(r.Header, q.Header)
	res, err := s.Client.Do(r)
	if err != nil {
		return Answer{}, err
	}
	if (res.ProtoMajor == 2) != s.http2 {
		return Answer{}, errors.Join(errors.New("the answer came by "+res.Proto), res.Body.Close())
	}
	all, err := io.ReadAll(res.Body)
	return Answer{res.StatusCode, res.Header, string(all)}, errors.Join(err, res.Body.Close())
}

// Begin sends the request and returns once its handler runs. The handler answers "done" when finish is called, which
// returns what the client got.
func (s *Service) Begin(q Request) (finish func() Answer) {
	s.t.Helper()
	entered, leave, over := make(chan struct{}), make(chan struct{}), make(chan Answer, 1)
	s.Handler = func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-leave
		_, _ = io.WriteString(w, "done")
	}
	go func() { a, _ := s.Try(context.Background(), q); over <- a }()
	select {
	case <-entered:
	case a := <-over:
		s.t.Fatalf("the handler did not run: %+v", a)
	}
	return func() Answer { close(leave); return <-over }
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// WantProblem checks that the answer is the problem, and tells nothing of the inside.
func (a Answer) WantProblem(t *testing.T, status int, code string) {
	t.Helper()
	if a.Status != status || !strings.Contains(a.Body, `"code":"`+code+`"`) ||
		a.Header.Get("Content-Type") != "application/problem+json" || a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %d %v %s, want the problem %s with %d", a.Status, a.Header, a.Body, code, status)
	}
	a.WantNothingInternal(t)
}

// WantNothingInternal checks that the answer has no text of an error, a package or a store.
func (a Answer) WantNothingInternal(t *testing.T) {
	t.Helper()
	for _, inside := range []string{
		"idem:", "idem_", "idemhttp", "payments\"", "sql", "SQL", "pq:", "redis", "panic", "goroutine", "runtime", ".go:", "127.0.0.1", "secret",
	} {
		if strings.Contains(a.Body, inside) {
			t.Errorf("the answer tells of the inside (%q): %.300s", inside, a.Body)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
