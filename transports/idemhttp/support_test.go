package idemhttp_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	idemsql "github.com/idem-go/idem/drivers/sql"
	"github.com/idem-go/idem/internal/testenv"
	"github.com/idem-go/idem/transports/idemhttp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

// store opens a store for a test.
type store struct {
	name       string
	guarantees []idem.Guarantee
	open       func(t *testing.T) driver.Driver
}

var leases = []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce}

var stores = []store{
	{"memory", leases, func(t *testing.T) driver.Driver {
		t.Helper()
		s, err := idemmemory.New()
		must(t, err)
		return s
	}},
	{"sqlite", append(leases, idem.ExactlyOnce), func(t *testing.T) driver.Driver {
		t.Helper()
		return openSQL(t, "sqlite", idemsql.SQLiteDSN(testenv.Backend(t, testenv.SQLite)))
	}},
	{"postgres", append(leases, idem.ExactlyOnce), func(t *testing.T) driver.Driver {
		t.Helper()
		return openSQL(t, "postgres", testenv.Backend(t, testenv.Postgres))
	}},
	{"mysql", append(leases, idem.ExactlyOnce), func(t *testing.T) driver.Driver {
		t.Helper()
		return openSQL(t, "mysql", testenv.Backend(t, testenv.MySQL))
	}},
}

var tables atomic.Int64

func openSQL(t *testing.T, name, dsn string) driver.Driver {
	t.Helper()
	db, err := sqlx.Open(name, dsn)
	must(t, err)
	table := fmt.Sprintf("idemhttp_%s_%d", strings.ToLower(rand.Text()[:8]), tables.Add(1))
	s, err := idemsql.New(db, idemsql.WithTable(table))
	must(t, err)
	must(t, s.Migrate(t.Context()))
	t.Cleanup(func() {
		db.MustExec("DROP TABLE " + table)
		db.MustExec("DROP TABLE " + table + "_version")
		_ = db.Close()
	})
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// service is a server with one protected route, whose handler can be changed.
type service struct {
	t       *testing.T
	url     string
	client  *http.Client
	op      *idem.Operation
	runs    atomic.Int64
	handler http.HandlerFunc
}

func serve(t *testing.T, d driver.Driver, g idem.Guarantee, http2 bool, opts ...idemhttp.Option) *service {
	t.Helper()
	op, err := idem.NewOperation("payments", d, g, idem.WithLogger(quiet))
	must(t, err)
	s := &service{t: t, op: op}
	protect, err := idemhttp.New(op, append([]idemhttp.Option{idemhttp.WithoutPrincipal(), idemhttp.WithLogger(quiet)}, opts...)...)
	must(t, err)
	mux := http.NewServeMux()
	protected := protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.runs.Add(1)
		s.handler(w, r)
	}))
	mux.Handle("/payments", protected)
	mux.Handle("/refunds", protected)
	server := httptest.NewUnstartedServer(recoverer(mux))
	server.EnableHTTP2 = http2
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	t.Cleanup(server.Close)
	s.url, s.client = server.URL, server.Client()
	if !http2 {
		s.client.Transport.(*http.Transport).TLSClientConfig.NextProtos = []string{"http/1.1"}
		s.client.Transport.(*http.Transport).TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return s
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

// answer is what a client got.
type answer struct {
	status int
	header http.Header
	body   string
}

// request is a POST /payments of {"amount":500} with the key, unless changed.
type request struct {
	method, path, key, body string
	header                  http.Header
}

func (s *service) send(q request) answer {
	s.t.Helper()
	a, err := s.try(s.t.Context(), q)
	must(s.t, err)
	return a
}

func (s *service) try(ctx context.Context, q request) (answer, error) {
	method, path, body := q.method, q.path, q.body
	if method == "" {
		method = http.MethodPost
	}
	if path == "" {
		path = "/payments"
	}
	if body == "" {
		body = `{"amount":500}`
	}
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	if q.key != "" {
		r.Header.Set("Idempotency-Key", q.key)
	}
	maps.Copy(r.Header, q.header)
	res, err := s.client.Do(r)
	if err != nil {
		return answer{}, err
	}
	all, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(all)}, errors.Join(err, res.Body.Close())
}

// wantProblem checks a problem document, and that nothing internal is in it.
func (a answer) wantProblem(t *testing.T, status int, code string) {
	t.Helper()
	if a.status != status || !strings.Contains(a.body, `"code":"`+code+`"`) ||
		a.header.Get("Content-Type") != "application/problem+json" || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %d %v %s, want the problem %s with %d", a.status, a.header, a.body, code, status)
	}
	for _, inside := range []string{"idem:", "payments", "sql", "panic", "goroutine"} {
		if strings.Contains(a.body, inside) {
			t.Errorf("%s tells of the inside: %s", code, a.body)
		}
	}
}
