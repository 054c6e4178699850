package idemsql

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jmoiron/sqlx"

	"github.com/idem-go/idem/driver"
)

// session is where statements run: the pool, each by itself, or a transaction.
type session struct {
	*Store

	on    *pool    // nil: the store's
	tx    *sqlx.Tx // nil: the pool
	locks bool     // claims lock their key first, where the dialect can

	tried *int // counts the statements that may have taken the lock of the key; nil: nobody asks
}

// locking returns the form of a claiming statement that locks the key first.
func (s session) locking(id statementID) statementID {
	switch {
	case s.locks && s.tried != nil:
		*s.tried++
		fallthrough
	case s.locks:
		if id == stClaim {
			return stLockClaim
		}
		return stLockTake
	case id == stClaim && s.tells():
		return stClaimTells
	}
	return id
}

// stmt returns the prepared statement, which database/sql prepares again on
// each connection that it meets. It must not be called by who holds a
// connection: it may need another one.
func (s *Store) stmt(ctx context.Context, p *pool, id statementID) (*sql.Stmt, error) {
	if st := p.prepared[id].Load(); st != nil {
		return st, nil
	}
	st, err := p.db.PrepareContext(ctx, s.statements[id].sql)
	if err != nil {
		return nil, err
	}
	if !p.prepared[id].CompareAndSwap(nil, st) {
		_ = st.Close() // another call was faster
		return p.prepared[id].Load(), nil
	}
	return st, nil
}

// prime prepares what a transaction will need, before it has the connection.
func (s *Store) prime(ctx context.Context) error {
	if err := s.learn(ctx, s.db); err != nil || s.config.unprepared {
		return err
	}
	for _, id := range s.dialect.transaction() {
		if _, err := s.stmt(ctx, &s.pool, id); err != nil {
			return err
		}
	}
	return nil
}

// executor is what a statement runs on, once it has been found out what that is.
type executor struct {
	stmt *sql.Stmt
	text interface {
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	} // if stmt is nil
}

func (s session) executor(ctx context.Context, id statementID) (executor, error) {
	p := s.on
	if p == nil {
		p = &s.pool
	}
	switch {
	case s.tx != nil:
		if st := p.prepared[id].Load(); st != nil {
			return executor{stmt: s.tx.StmtContext(ctx, st)}, nil // the transaction's end closes it
		}
		return executor{text: s.tx}, nil
	case s.config.unprepared:
		return executor{text: p.db}, nil
	}
	st, err := s.stmt(ctx, p, id)
	return executor{stmt: st}, err
}

func (s session) query(ctx context.Context, id statementID, a *args) (*sql.Rows, error) {
	e, err := s.executor(ctx, id)
	if err != nil {
		return nil, err
	}
	st := &s.statements[id]
	if e.stmt != nil {
		return e.stmt.QueryContext(ctx, st.bind(a)...)
	}
	return e.text.QueryContext(ctx, st.sql, st.bind(a)...)
}

// exec runs a statement that answers no rows.
func (s session) exec(ctx context.Context, id statementID, a *args) (sql.Result, error) {
	e, err := s.executor(ctx, id)
	if err != nil {
		return nil, err
	}
	st := &s.statements[id]
	if e.stmt != nil {
		return e.stmt.ExecContext(ctx, st.bind(a)...)
	}
	return e.text.ExecContext(ctx, st.sql, st.bind(a)...)
}

// one runs a statement that answers at most one row. It reads to the end:
// SQLite commits an UPDATE … RETURNING when its last row has been fetched, so
// only then an error has been seen.
func (s session) one(ctx context.Context, id statementID, a *args, dest ...any) (found bool, err error) {
	err = s.each(ctx, id, a, func(scan func(...any) error) error {
		found = true
		return scan(dest...)
	})
	return found && err == nil, err
}

// stamp runs a write that answers one number, which is never 0: the clock that
// it was decided by, or what is left of a lease. found is false if there was
// nothing to write.
func (s session) stamp(ctx context.Context, id statementID, a *args) (n int64, found bool, err error) {
	if !s.dialect.stamps {
		found, err = s.one(ctx, id, a, &n)
		return n, found, err
	}
	res, err := s.exec(ctx, id, a)
	if err != nil {
		return 0, false, err
	}
	n, err = res.LastInsertId()
	return n, n != 0, err
}

// each calls f for every row of the statement's answer.
func (s session) each(ctx context.Context, id statementID, a *args, f func(scan func(...any) error) error) error {
	rows, err := s.query(ctx, id, a)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return fmt.Errorf("%w: %w", driver.ErrCorrupt, err)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return rows.Close()
}

// read reads the record of the key in a.
func (s session) read(ctx context.Context, a *args) (*record, error) {
	return s.readBy(ctx, stRead, a)
}

func (s session) readBy(ctx context.Context, id statementID, a *args) (*record, error) {
	r := &record{unit: s.dialect.unit}
	found, err := s.one(ctx, id, a, r.dest()...)
	if !found {
		return nil, err
	}
	return r, nil
}

// readLatest reads the record that a claim has met.
func (s session) readLatest(ctx context.Context, a *args) (*record, error) {
	if s.tx == nil || s.dialect.templates[stReadLatest] == "" {
		return s.read(ctx, a)
	}
	return s.readBy(ctx, stReadLatest, a)
}

// tell runs a statement that answers a number and a record; nil: no row.
func (s session) tell(ctx context.Context, id statementID, a *args) (n int64, r *record, err error) {
	r = &record{unit: s.dialect.unit}
	found, err := s.one(ctx, id, a, append([]any{&n}, r.dest()...)...)
	if !found {
		return 0, nil, err
	}
	return n, r, nil
}
