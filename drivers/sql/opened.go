package idemsql

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"
)

// unlockWait bounds how long a lock is given up that outlives its transaction.
const unlockWait = 5 * time.Second

// opened is an open transaction and the connection that it has to itself.
type opened struct {
	*Store

	conn   *sqlx.Conn
	tx     *sqlx.Tx
	args   *args
	locked bool // the key's lock may be held, and outlives the transaction
}

// open begins a transaction. ctx is only for what waits until it has begun.
func (s *Store) open(ctx context.Context, a *args) (*opened, error) {
	conn, err := s.db.Connx(ctx)
	if err != nil {
		return nil, err
	}
	// The end of this context would roll the transaction back behind fn's back,
	// so it is the caller's only while BEGIN may wait for a lock.
	tctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	tx, err := conn.BeginTxx(tctx, s.config.txOptions)
	o := &opened{Store: s, conn: conn, tx: tx, args: a}
	if !stop() {
		o.end()
		return nil, errors.Join(ctx.Err(), err)
	}
	if err != nil {
		cancel()
		o.end()
		return nil, err
	}
	return o, nil
}

func (o *opened) session() session {
	return session{Store: o.Store, tx: o.tx, locks: o.dialect.lock != nil, locked: &o.locked}
}

// end rolls back what was not committed, and gives the connection back, free
// of locks: one of which that is not known for sure is closed, which frees them.
func (o *opened) end() {
	if o.tx != nil {
		_ = o.tx.Rollback() // does nothing after a commit
	}
	if o.locked && o.dialect.templates[stUnlock] != "" && o.unlock() != nil {
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
