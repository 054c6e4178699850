package idemsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/idem-go/idem/driver"
)

// transaction is an open transaction that a context carries.
type transaction struct {
	tx    *sqlx.Tx
	pool  *sql.DB // nil: the user's, so of a pool that is still to be found out
	depth int     // of savepoints

	// turn is held by the one joined run that is under way at this depth: the
	// savepoints of two at once would roll each other back.
	turn  chan struct{}
	outer *transaction
}

type transactionKey struct{}

func innermost(ctx context.Context) *transaction {
	t, _ := ctx.Value(transactionKey{}).(*transaction)
	return t
}

func (t *transaction) into(ctx context.Context) context.Context {
	t.outer = innermost(ctx)
	return context.WithValue(ctx, transactionKey{}, t)
}

// Tx returns the transaction that ctx carries: in an ExactlyOnce operation's
// function the one in which its effect must be written, else the one that
// [Join] put there, the innermost if there are several. The caller must not
// commit it or roll it back. It is for one goroutine at a time.
func Tx(ctx context.Context) (*sqlx.Tx, bool) {
	if t := innermost(ctx); t != nil {
		return t.tx, true
	}
	return nil, false
}

var errNoTransaction = errors.New("idemsql: the context carries no transaction: " +
	"use InTx with an ExactlyOnce operation on a store of this package")

// InTx turns a function that wants the transaction into one that finds it in
// its context, see [Tx]. Without one it fails.
func InTx[T any](fn func(ctx context.Context, tx *sqlx.Tx) (T, error)) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) {
		tx, ok := Tx(ctx)
		if !ok {
			var zero T
			return zero, errNoTransaction
		}
		return fn(ctx, tx)
	}
}

// Join returns a context in which ExactlyOnce operations run inside a
// transaction that the caller has opened and will end: claim, effect and
// outcome are kept or lost with it. It concerns the stores on the pool that the
// transaction was begun on, and all of their tables; a store on another pool
// takes no notice and begins a transaction of its own. Nothing is retried
// inside, since only the caller can begin the transaction anew. tx must not be
// nil.
//
// On SQLite, begin the transaction with _txlock=immediate (see [SQLiteDSN]):
// one that has read before it writes fails where another writer came between.
func Join(ctx context.Context, tx *sqlx.Tx) context.Context {
	if tx == nil || tx.Tx == nil {
		panic("idemsql: Join needs a transaction")
	}
	if t := innermost(ctx); t != nil && t.tx.Tx == tx.Tx {
		return ctx
	}
	return (&transaction{tx: tx, turn: make(chan struct{}, 1)}).into(ctx)
}

// transaction returns the innermost transaction in ctx that was begun on this
// store's pool; nil: there is none.
func (s *Store) transaction(ctx context.Context) (t *transaction, err error) {
	for t = innermost(ctx); t != nil; t = t.outer {
		ours := t.pool == s.db.DB
		if t.pool == nil {
			if ours, err = s.began(ctx, t.tx); err != nil {
				return nil, s.failed("join", err)
			}
		}
		if ours {
			break
		}
	}
	return t, nil
}

// began reports whether a user's transaction was begun on this store's pool.
// database/sql tells only when a statement of the pool is used in it.
func (s *Store) began(ctx context.Context, tx *sqlx.Tx) (bool, error) {
	st, err := s.probe(ctx)
	if err != nil {
		return false, err
	}
	err = tx.StmtContext(ctx, st).Close()
	if err != nil && strings.Contains(err.Error(), "different database") {
		return false, nil
	}
	return err == nil, err
}

// probe returns a statement of the pool, and prepares one if there is none yet
// and the pool has a connection for it.
func (s *Store) probe(ctx context.Context) (*sql.Stmt, error) {
	if st := s.prepared[stRead].Load(); st != nil {
		return st, nil
	}
	if stats := s.db.Stats(); stats.MaxOpenConnections > 0 && stats.InUse >= stats.MaxOpenConnections {
		return nil, errors.New("the pool has no connection left to find out whether the transaction is one of its own: " +
			"call Verify at start-up")
	}
	return s.stmt(ctx, &s.pool, stRead)
}

// alone refuses a call that would wait for the transaction in its own context.
func (s *Store) alone(ctx context.Context) error {
	if !s.dialect.singleWriter {
		return nil
	}
	t, err := s.transaction(ctx)
	if err == nil && t != nil {
		return fmt.Errorf("idemsql: %s has one writer at a time: %w", s.dialect.title, driver.ErrNested)
	}
	return err
}

// join runs fn in a savepoint of an open transaction.
func (s *Store) join(
	ctx context.Context, t *transaction, p *driver.ClaimParams, fn driver.TransactFunc,
) (driver.TransactResult, error) {
	if err := t.enter(ctx); err != nil {
		return driver.TransactResult{}, s.failed("join", err)
	}
	defer t.leave()
	if err := s.learn(ctx, t.tx); err != nil {
		return driver.TransactResult{}, s.failed("join", err)
	}
	in := session{Store: s, tx: t.tx, locks: s.dialect.lockLasts}
	a := s.lockArgs(p)
	var seen *record
	if s.readFirst(p.Key) {
		var res driver.ClaimResult
		var err error
		if seen, res, err = in.look(ctx, p, a); err != nil {
			return driver.TransactResult{}, s.failed("join", s.conflict(err))
		}
		if res.Decision != 0 && res.Decision != driver.DecisionClaimed {
			s.saw(p.Key, res.Decision)
			res.Joined = true
			return driver.TransactResult{Claim: res}, nil
		}
	}
	return in.savepoint(ctx, t, p, a, seen, fn)
}

func (s session) savepoint(
	ctx context.Context, t *transaction, p *driver.ClaimParams, a *args, seen *record, fn driver.TransactFunc,
) (res driver.TransactResult, err error) {
	// Numbered, since some databases let a second savepoint of one name end the first.
	name := "idem_" + strconv.Itoa(t.depth)
	if _, err := s.tx.ExecContext(ctx, "SAVEPOINT "+name); err != nil {
		return res, s.failed("join", s.conflict(err))
	}
	detached := context.WithoutCancel(ctx)
	kept := false
	defer func() {
		if kept {
			return
		}
		// If these fail, the transaction is gone as a whole, as its owner will see.
		if _, err := s.tx.ExecContext(detached, "ROLLBACK TO SAVEPOINT "+name); err == nil {
			_, _ = s.tx.ExecContext(detached, "RELEASE SAVEPOINT "+name)
		}
	}()
	if res.Claim, err = s.claim(ctx, p, a, seen); err != nil {
		return driver.TransactResult{}, s.failed("join", s.conflict(err))
	}
	res.Claim.Joined = true
	s.saw(p.Key, res.Claim.Decision)
	if res.Claim.Decision == driver.DecisionClaimed {
		inner := &transaction{tx: t.tx, pool: s.db.DB, depth: t.depth + 1, turn: make(chan struct{}, 1)}
		c, err := fn(inner.into(ctx), res.Claim)
		if err != nil {
			return res, s.conflict(err)
		}
		if res.Complete, err = s.finish(detached, p, &c); err != nil {
			return res, s.failed("complete", err)
		}
	}
	if _, err := s.tx.ExecContext(detached, "RELEASE SAVEPOINT "+name); err != nil {
		return res, s.failed("join", err)
	}
	kept = true
	return res, nil
}

// conflict marks a failure for want of a lock: whoever began the transaction
// may begin it anew.
func (s *Store) conflict(err error) error {
	if s.is(err, kindLocked) {
		return fmt.Errorf("%w: %w", driver.ErrConflict, err)
	}
	return err
}

func (t *transaction) enter(ctx context.Context) error {
	timer := time.NewTimer(BusyWait)
	defer timer.Stop()
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-timer.C:
		return fmt.Errorf("%w for %v: another run in the same transaction", driver.ErrBusy, BusyWait)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *transaction) leave() { <-t.turn }
