package idemsql

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/idem-go/idem/driver"
)

const (
	// unlockWait bounds how long a lock is given up that outlives its transaction.
	unlockWait = 5 * time.Second
	// finishWait is how long completing and committing may take, at least.
	finishWait = 5 * time.Second
)

// opened is an open transaction.
type opened struct {
	*Store

	ctx    context.Context //nolint:containedctx // the transaction's life
	cancel context.CancelFunc
	tx     *sqlx.Tx
	args   *args
	ended  bool

	// Where the lock of the key outlives the transaction, its connection is kept to the end.
	conn   *sqlx.Conn
	tried  int  // statements that may have taken the lock
	locked bool // the lock may be held
	unfit  bool // the connection may be in a transaction
}

// open begins a transaction. ctx is only for what waits until it has begun.
func (s *Store) open(ctx context.Context, a *args) (*opened, error) {
	o := &opened{Store: s, args: a}
	begin := s.db.BeginTxx
	if s.dialect.templates[stUnlock] != "" {
		var err error
		if o.conn, err = s.db.Connx(ctx); err != nil {
			return nil, err
		}
		begin = o.conn.BeginTxx
	}
	// The end of this context would roll the transaction back behind fn's back,
	// so it is the caller's only while BEGIN may wait for a lock.
	o.ctx, o.cancel = context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, o.cancel)
	var err error
	if o.tx, err = begin(o.ctx, s.config.txOptions); err != nil {
		stop()
		o.end()
		return nil, err
	}
	if !stop() {
		o.end()
		return nil, ctx.Err()
	}
	return o, nil
}

func (o *opened) session() session {
	return session{Store: o.Store, tx: o.tx, locks: o.dialect.lock != nil, tried: &o.tried}
}

// claimed notes whether the lock of the key may be held after a claim: not if
// an outcome answered its only statement, which gave the lock up again, nor if
// another transaction has it.
func (o *opened) claimed(claim driver.ClaimResult, err error) {
	elsewhere := claim.Decision == driver.DecisionInFlight && claim.Fence == 0
	o.locked = err != nil || o.tried > 1 || claim.Decision != driver.DecisionCompleted && !elsewhere
}

// finishing bounds what follows. The drivers of PostgreSQL heed it in a COMMIT
// too, MySQL's does not.
func (o *opened) finishing(lease time.Duration) (stop func() bool) {
	return time.AfterFunc(max(lease, finishWait), o.cancel).Stop
}

// finished notes that the completion has given the lock up as often as the
// claim has taken it: once, if it was one statement.
func (o *opened) finished() { o.locked = o.tried > 1 }

// commit commits. MySQL leaves a transaction open whose COMMIT it refuses, and
// the next BEGIN on the connection would commit it after all.
func (o *opened) commit() error {
	err := o.tx.Commit()
	o.unfit = err != nil
	return err
}

// end rolls back what was not committed, and gives the connection back, free
// of locks: one of which that is not known for sure is closed, which frees them.
func (o *opened) end() {
	if o.ended {
		return
	}
	o.ended = true
	if o.tx != nil {
		_ = o.tx.Rollback() // does nothing after a commit
	}
	o.cancel()
	if o.conn == nil {
		return
	}
	if o.unfit || o.locked && o.unlock() != nil {
		_ = o.conn.Raw(func(any) error { return sqldriver.ErrBadConn })
	}
	_ = o.conn.Close()
}

// unlock gives the key's lock up as often as it was taken.
func (o *opened) unlock() error {
	ctx, cancel := context.WithTimeout(context.Background(), unlockWait)
	defer cancel()
	st := &o.statements[stUnlock]
	for range claimTries {
		var held int
		if err := o.conn.QueryRowContext(ctx, st.sql, st.bind(o.args)...).Scan(&held); err != nil || held == 0 {
			return err
		}
	}
	return errors.New("idemsql: the lock of the key does not end")
}
