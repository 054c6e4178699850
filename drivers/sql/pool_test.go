package idemsql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/idem-go/idem/driver"
	idemsql "github.com/idem-go/idem/drivers/sql"
)

// onServers runs a test on each of the servers, as most programs use them.
func onServers(t *testing.T, f func(t *testing.T, s server)) {
	t.Helper()
	for _, name := range []string{"postgres", "mysql", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, servers[name])
		})
	}
}

func (s server) family() bool { return s.driver == "mysql" }

// write writes an effect beside the record, in the transaction that ctx carries.
func (b *bundle) write(id string) func(context.Context) error {
	return func(ctx context.Context) error {
		tx, ok := idemsql.Tx(ctx)
		if !ok {
			return errors.New("the context carries no transaction")
		}
		_, err := tx.ExecContext(ctx, tx.Rebind("INSERT INTO "+b.table+"_effects (id) VALUES (?)"), id)
		return err
	}
}

func (b *bundle) count(id string) (n int) {
	b.t.Helper()
	must(b.t, b.db.Get(&n, b.db.Rebind("SELECT count(*) FROM "+b.table+"_effects WHERE id = ?"), id))
	return n
}

// one opens another handle whose pool has one connection.
func (s server) one(t *testing.T, b *bundle, opts ...idemsql.Option) *bundle {
	t.Helper()
	other := s.openTable(t, b.path, b.table, opts...)
	other.db.SetMaxOpenConns(1)
	return other
}

// However a transaction ends, its key is free for others at once, and its
// connection for whatever comes.
func TestNoEndOfATransactionKeepsItsKey(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s server) {
		t.Helper()
		shared := s.open(t)
		errFailed := errors.New("failed")
		for end, f := range map[string]func(ctx context.Context, cancel func()) error{
			"failure":   func(context.Context, func()) error { return errFailed },
			"panic":     func(context.Context, func()) error { panic(errFailed) },
			"Goexit":    func(context.Context, func()) error { runtime.Goexit(); return nil },
			"cancelled": func(ctx context.Context, cancel func()) error { cancel(); return ctx.Err() },
			"cancelled in a statement": func(ctx context.Context, cancel func()) error {
				cancel()
				return shared.write("x")(ctx)
			},
			"rolled back": func(ctx context.Context, _ func()) error {
				tx, _ := idemsql.Tx(ctx)
				return tx.Rollback()
			},
			"rolled back by a statement": func(ctx context.Context, _ func()) error {
				tx, _ := idemsql.Tx(ctx)
				_, err := tx.ExecContext(ctx, "ROLLBACK")
				return err
			},
			"a bad statement": func(ctx context.Context, _ func()) error {
				tx, _ := idemsql.Tx(ctx)
				_, err := tx.ExecContext(ctx, "NONSENSE")
				return err
			},
		} {
			one := s.one(t, shared)
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				_, err := one.transact(ctx, claimOf(end), func(ctx context.Context) error { return f(ctx, cancel) })
				if err == nil {
					t.Errorf("%s: the transaction succeeds", end)
				}
			}()
			<-done
			// The same connection is usable, and another process has the key at once.
			_, err := one.transact(t.Context(), claimOf("after "+end), one.write("after "+end))
			must(t, err)
			res, err := shared.transact(t.Context(), claimOf(end), shared.write(end))
			if err != nil || res.Claim.Decision != driver.DecisionClaimed || shared.count(end) != 1 {
				t.Errorf("%s: another process has %v, %v and %d effects", end, res.Claim.Decision, err, shared.count(end))
			}
		}
	})
}

// A function that commits on its own has had its effect: the outcome follows,
// in a pool of one connection too.
func TestAFunctionThatCommitsItselfKeepsItsOutcome(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s server) {
		t.Helper()
		one := s.one(t, s.open(t))
		_, err := one.transact(t.Context(), claimOf("x"), func(ctx context.Context) error {
			tx, _ := idemsql.Tx(ctx)
			return errors.Join(one.write("x")(ctx), tx.Commit())
		})
		if err == nil || !strings.Contains(err.Error(), "fn ended the transaction itself") {
			t.Errorf("the call says %v", err)
		}
		one.mustClaim(claimOf("x"), driver.DecisionCompleted)
	})
}

// A takeover tries for the lock of its key more than once.
func TestATakeoverLeavesNoLockBehind(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s server) {
		t.Helper()
		shared := s.open(t)
		one := s.one(t, shared)
		for i := range 5 {
			p := claimOf(fmt.Sprint("x", i))
			p.Lease = time.Millisecond
			shared.mustClaim(p, driver.DecisionClaimed)
			time.Sleep(5 * time.Millisecond)
			q := claimOf(p.Key.ID)
			q.Lease = time.Millisecond
			_, err := one.transact(t.Context(), q, one.write(p.Key.ID))
			must(t, err)
			res, err := shared.transact(t.Context(), claimOf(p.Key.ID), nil)
			if err != nil || res.Claim.Decision != driver.DecisionCompleted {
				t.Errorf("after a takeover another process has %v, %v", res.Claim.Decision, err)
			}
		}
		if s.family() {
			var name sql.NullString
			must(t, one.db.Get(&name, "SELECT RELEASE_ALL_LOCKS()"))
			if name.String != "0" {
				t.Errorf("%s locks are left on the connection", name.String)
			}
		}
	})
}

// Sessions that the server has ended are replaced, without an error.
func TestEndedSessionsAreReplaced(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s server) {
		t.Helper()
		shared := s.open(t)
		few := s.openTable(t, shared.path, shared.table)
		few.db.SetMaxOpenConns(3)
		few.db.SetMaxIdleConns(3)
		for round := range 4 {
			few.db.SetMaxIdleConns(0) // those that are left of the round before would fail here
			few.db.SetMaxIdleConns(3)
			s.kick(t, shared, few, 3)
			id := strconv.Itoa(round)
			if round%2 == 0 {
				_, err := few.transact(t.Context(), claimOf(id), few.write(id))
				must(t, err)
				continue
			}
			p := claimOf(id)
			few.mustClaim(p, driver.DecisionClaimed)
			few.mustComplete(p, "x")
		}
	})
}

// kick has the server end n sessions that lie idle in the pool then.
func (s server) kick(t *testing.T, shared, few *bundle, n int) {
	t.Helper()
	id, end := "SELECT pg_backend_pid()", "SELECT pg_terminate_backend(%d)"
	if s.family() {
		id, end = "SELECT CONNECTION_ID()", "KILL %d"
	}
	conns := make([]*sqlx.Conn, n)
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	for i := range conns {
		c, err := few.db.Connx(t.Context())
		must(t, err)
		conns[i] = c
		var session int64
		must(t, c.GetContext(t.Context(), &session, id))
		_, err = shared.db.ExecContext(t.Context(), fmt.Sprintf(end, session))
		must(t, err)
	}
}

// N6: a function that holds every connection of the pool keeps its lease.
func TestAHeartbeatPoolRenewsWhileAllConnectionsAreHeld(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s server) {
		t.Helper()
		shared := s.open(t)
		beats, err := sqlx.Open(s.driver, shared.path)
		must(t, err)
		t.Cleanup(func() { _ = beats.Close() })
		one := s.one(t, shared, idemsql.WithHeartbeatPool(beats))
		p := claimOf("x")
		one.mustClaim(p, driver.DecisionClaimed)
		c, err := one.db.Connx(t.Context())
		must(t, err)
		defer c.Close()
		res, err := one.Renew(t.Context(), renewalOf(p, time.Hour))
		if err != nil || res.LeaseLeft < 59*time.Minute {
			t.Errorf("the renewal has %v, %v", res.LeaseLeft, err)
		}
		batch, err := one.RenewBatch(t.Context(), driver.RenewBatchParams{Renewals: []driver.RenewParams{
			renewalOf(p, 2*time.Hour), renewalOf(claimOf("none"), time.Hour),
		}})
		must(t, err)
		if batch.Renewals[0].Result.LeaseLeft < 119*time.Minute || !errors.Is(batch.Renewals[1].Err, driver.ErrLost) {
			t.Errorf("the batch has %+v", batch.Renewals)
		}
	})
	if _, err := idemsql.New(setup(t).db, idemsql.WithHeartbeatPool[*sqlx.DB](nil)); err == nil {
		t.Error("a nil pool is accepted")
	}
}

// A janitor purges until it is told to stop, whatever fails in between.
func TestAJanitorPurgesUntilItIsStopped(t *testing.T) {
	t.Parallel()
	s, r := record(t)
	var purges atomic.Int64
	r.after = func(statement string) error {
		if !strings.HasPrefix(statement, "DELETE") {
			return nil
		}
		if purges.Add(1) == 1 {
			return errors.New("broken")
		}
		return nil
	}
	s.expired(250)
	ctx, cancel := context.WithCancelCause(t.Context())
	errStop := errors.New("stop")
	done := make(chan error)
	go func() { done <- s.Janitor(ctx, 10*time.Millisecond, 100) }()
	for s.rows() > 0 {
		time.Sleep(time.Millisecond)
	}
	cancel(errStop)
	if err := <-done; !errors.Is(err, errStop) {
		t.Errorf("the janitor returns %v", err)
	}
	for _, bad := range []error{s.Janitor(t.Context(), 0, 1), s.Janitor(t.Context(), time.Hour, 0)} {
		if !errors.Is(bad, driver.ErrInvalid) {
			t.Errorf("the janitor returns %v", bad)
		}
	}
}

// expired inserts records that are past everything that they were kept for.
func (b *bundle) expired(n int) {
	b.t.Helper()
	b.db.MustExec(`INSERT INTO idem_records (scope, id, format, state, guarantee, on_lapse, token, fence, generation, attempt,
		took_over, claimed_at, ended_at, retention, tombstone, purge_at, outcome)
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		SELECT x'61', CAST(i AS BLOB), 1, 2, 1, 1, zeroblob(16), 1, 1, 1, 0, 1, 1, 1, 0, 2, x'78' FROM n`, n)
}
