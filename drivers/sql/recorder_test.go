package idemsql_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"
	"modernc.org/sqlite"

	idemsql "github.com/idem-go/idem/drivers/sql"
)

// recorder is a connector that writes down what is sent, and lets a test make
// a statement's reply get lost.
type recorder struct {
	sqldriver.Connector

	mu   sync.Mutex
	sent []string // first words: SELECT, INSERT, UPDATE, DELETE, BEGIN, COMMIT, ROLLBACK, …
	// after is called when a statement has been carried out; its error takes
	// the place of the reply.
	after func(statement string) error
}

// record sets up a store on a recorded pool.
func record(t testing.TB, opts ...idemsql.Option) (*bundle, *recorder) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "records.db")
	c, err := sqlite.NewConnector(idemsql.SQLiteDSN(path))
	must(t, err)
	r := &recorder{Connector: c}
	db := sqlx.NewDb(sql.OpenDB(r), "sqlite")
	t.Cleanup(func() { _ = db.Close() })
	return setupPool(t, path, db, opts...), r
}

// of returns what f sends.
func (r *recorder) of(f func()) string {
	r.mu.Lock()
	r.sent = nil
	r.mu.Unlock()
	f()
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.sent, " ")
}

func (r *recorder) done(statement string, err error) error {
	word, _, _ := strings.Cut(strings.TrimSpace(statement), " ")
	r.mu.Lock()
	r.sent = append(r.sent, word)
	after := r.after
	r.mu.Unlock()
	if err == nil && after != nil {
		return after(strings.TrimSpace(statement))
	}
	return err
}

// lose makes the reply of the next statement that begins with word become err.
func (r *recorder) lose(word string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.after = func(statement string) error {
		if !strings.HasPrefix(statement, word) {
			return nil
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.after = nil
		return err
	}
}

func (r *recorder) Connect(ctx context.Context) (sqldriver.Conn, error) {
	c, err := r.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &recordedConn{fullConn: c.(fullConn), r: r}, nil
}

type fullConn interface {
	sqldriver.Conn
	sqldriver.ConnBeginTx
	sqldriver.ConnPrepareContext
	sqldriver.ExecerContext
	sqldriver.QueryerContext
	sqldriver.SessionResetter
	sqldriver.Validator
}

type recordedConn struct {
	fullConn

	r *recorder
}

func (c *recordedConn) ExecContext(ctx context.Context, q string, a []sqldriver.NamedValue) (sqldriver.Result, error) {
	res, err := c.fullConn.ExecContext(ctx, q, a)
	return res, c.r.done(q, err)
}

func (c *recordedConn) QueryContext(ctx context.Context, q string, a []sqldriver.NamedValue) (sqldriver.Rows, error) {
	rows, err := c.fullConn.QueryContext(ctx, q, a)
	return kept(rows, c.r.done(q, err))
}

func (c *recordedConn) BeginTx(ctx context.Context, o sqldriver.TxOptions) (sqldriver.Tx, error) {
	tx, err := c.fullConn.BeginTx(ctx, o)
	if err := c.r.done("BEGIN", err); err != nil {
		return nil, err
	}
	return &recordedTx{Tx: tx, r: c.r}, nil
}

func (c *recordedConn) PrepareContext(ctx context.Context, q string) (sqldriver.Stmt, error) {
	st, err := c.fullConn.PrepareContext(ctx, q)
	if err != nil {
		return nil, err
	}
	return &recordedStmt{fullStmt: st.(fullStmt), query: q, r: c.r}, nil
}

type recordedTx struct {
	sqldriver.Tx

	r *recorder
}

func (t *recordedTx) Commit() error   { return t.r.done("COMMIT", t.Tx.Commit()) }
func (t *recordedTx) Rollback() error { return t.r.done("ROLLBACK", t.Tx.Rollback()) }

type fullStmt interface {
	sqldriver.Stmt
	sqldriver.StmtExecContext
	sqldriver.StmtQueryContext
}

type recordedStmt struct {
	fullStmt

	query string
	r     *recorder
}

func (s *recordedStmt) ExecContext(ctx context.Context, a []sqldriver.NamedValue) (sqldriver.Result, error) {
	res, err := s.fullStmt.ExecContext(ctx, a)
	return res, s.r.done(s.query, err)
}

func (s *recordedStmt) QueryContext(ctx context.Context, a []sqldriver.NamedValue) (sqldriver.Rows, error) {
	rows, err := s.fullStmt.QueryContext(ctx, a)
	return kept(rows, s.r.done(s.query, err))
}

// kept closes rows that will not be returned, which carries the statement out to its end.
func kept(rows sqldriver.Rows, err error) (sqldriver.Rows, error) {
	if err != nil && rows != nil {
		_ = rows.Close()
		return nil, err
	}
	return rows, err
}
