// Package classification_test provokes errors on real servers, and holds what the engine makes
// of them against what they mean. It is a package of its own because it imports every driver.
package classification_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	domain  = idem.KindDomain
	passing = idem.KindInfrastructure
	bug     = idem.KindBug
)

// table are errors by how they were provoked, and what they mean.
type table map[string]provoked

type provoked struct {
	err  error
	want idem.FailureKind
}

// check has an operation run into each error, bare, wrapped and joined.
func (rows table) check(t *testing.T, classify func(error) driver.FailureKind) {
	t.Helper()
	store, err := idemmemory.New()
	must(t, err)
	for name, row := range rows {
		if row.err == nil {
			t.Errorf("%s: there was no error", name)
			continue
		}
		forms := map[string]error{
			"": row.err, ", wrapped": fmt.Errorf("pay: %w", row.err), ", joined": fmt.Errorf("x: %w", joined(row.err)),
		}
		for form, err := range forms {
			if got := kindOf(t, store, name+form, err, classify); got != row.want {
				t.Errorf("%s%s is %v, want %v: %T %v", name, form, got, row.want, row.err, row.err)
			}
		}
		t.Logf("%-45s %-15v %T: %.120s", name, row.want, row.err, strings.ReplaceAll(row.err.Error(), "\n", " "))
	}
}

func joined(err error) error { return fmt.Errorf("%w, %w", errors.New("another"), err) }

// kindOf is what a whole operation makes of an error: the classifier, then the default.
func kindOf(t *testing.T, d driver.Driver, key string, failure error, classify func(error) driver.FailureKind) idem.FailureKind {
	t.Helper()
	said := idem.KindUnknown
	op, err := idem.NewOperation("classified", d, idem.AtLeastOnce, idem.WithClassifier(func(err error) idem.FailureKind {
		said = classify(err)
		return said
	}))
	must(t, err)
	_ = idem.Do(t.Context(), key, func(context.Context) error { return failure }, idem.On(op))
	rec, _, err := op.Inspect(t.Context(), key)
	must(t, err)
	stored := rec.State == driver.StateCompleted
	switch {
	case stored != (said == domain) && said != idem.KindUnknown:
		t.Errorf("%s: classified as %v, and the record is %v", key, said, rec.State)
	case said != idem.KindUnknown:
		return said
	case stored:
		return domain
	}
	return passing
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// name is new in the server.
func name() string { return "idem_classified_" + strings.ToLower(rand.Text()[:10]) }

// refused is an address at which nobody listens.
func refused(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, l.Close())
	return l.Addr().String()
}

// proxy passes connections on to a server, until it is told otherwise.
type proxy struct {
	net.Listener

	mu     sync.Mutex
	conns  []*net.TCPConn
	silent bool // replies are swallowed
	wg     sync.WaitGroup
}

func newProxy(t testing.TB, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &proxy{Listener: l}
	p.wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, client.(*net.TCPConn), upstream.(*net.TCPConn))
			p.mu.Unlock()
			p.wg.Go(func() { _, _ = io.Copy(upstream, client); _ = upstream.Close() })
			p.wg.Go(func() { p.reply(client, upstream); _ = client.Close() })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.reset()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) addr() string { return p.Addr().String() }

func (p *proxy) reply(client, upstream net.Conn) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := upstream.Read(buffer)
		if err != nil {
			return
		}
		p.mu.Lock()
		silent := p.silent
		p.mu.Unlock()
		if !silent {
			_, _ = client.Write(buffer[:n])
		}
	}
}

// swallow lets no reply through any more.
func (p *proxy) swallow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = true
}

// reset ends all connections the hard way.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.SetLinger(0)
		_ = c.Close()
	}
}

func open(t testing.TB, driverName, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driverName, dsn)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func conn(t testing.TB, db *sql.DB) *sql.Conn {
	t.Helper()
	c, err := db.Conn(t.Context())
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// fails returns the error of a statement.
func fails(t testing.TB, db execer, query string, args ...any) error {
	t.Helper()
	_, err := db.ExecContext(t.Context(), query, args...)
	return err
}

func run(t testing.TB, db execer, queries ...string) {
	t.Helper()
	for _, q := range queries {
		if err := fails(t, db, q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// either returns the error of the one of two calls that fails, both of which run at once.
func either(a, b func() error) error {
	errs := make(chan error, 2)
	go func() { errs <- a() }()
	go func() { errs <- b() }()
	first, second := <-errs, <-errs
	if first != nil {
		return first
	}
	return second
}

func short(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}
