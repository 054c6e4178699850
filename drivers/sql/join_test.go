package idemsql_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/idem-go/idem/driver"
	idemsql "github.com/idem-go/idem/drivers/sql"
)

// S18.
func TestTheOwnerOfAJoinedTransactionDecides(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for id, commit := range map[string]bool{"kept": true, "lost": false} {
		tx := s.db.MustBegin()
		res, err := s.transact(idemsql.Join(t.Context(), tx), claimOf(id), effect(id))
		must(t, err)
		if !res.Claim.Joined || res.Claim.Decision != driver.DecisionClaimed || res.Complete.CompletedAt.IsZero() {
			t.Errorf("the joined run gets %+v", res)
		}
		if commit {
			must(t, tx.Commit())
		} else {
			must(t, tx.Rollback())
		}
	}
	if k, l := s.effects("kept"), s.effects("lost"); k != 1 || l != 0 {
		t.Errorf("%d effects of the committed and %d of the rolled back transaction", k, l)
	}
	s.mustClaim(claimOf("kept"), driver.DecisionCompleted)
	s.mustClaim(claimOf("lost"), driver.DecisionClaimed)
}

func TestAJoinedRunThatFailsUndoesOnlyItself(t *testing.T) {
	t.Parallel()
	s := setup(t)
	tx := s.db.MustBegin()
	ctx := idemsql.Join(t.Context(), tx)
	_, err := s.transact(ctx, claimOf("before"), effect("before"))
	must(t, err)
	_, err = s.transact(ctx, claimOf("failed"), func(ctx context.Context) error {
		must(t, effect("failed")(ctx))
		return errEffect
	})
	if !errors.Is(err, errEffect) {
		t.Errorf("the run ends with %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = s.transact(ctx, claimOf("panicked"), func(ctx context.Context) error {
			must(t, effect("panicked")(ctx))
			panic(errEffect)
		})
	}()
	_, err = s.transact(ctx, claimOf("after"), effect("after"))
	must(t, err)
	must(t, tx.Commit())
	for id, want := range map[string]int{"before": 1, "failed": 0, "panicked": 0, "after": 1} {
		if n := s.effects(id); n != want {
			t.Errorf("%d effects of %q, want %d", n, id, want)
		}
	}
	if n := s.rows(); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
}

// Rule 15.
func TestANestedInboxJoinsByASavepoint(t *testing.T) {
	t.Parallel()
	s := setup(t)
	other := setupPool(t, s.path, s.db, idemsql.WithTable("other")) // one pool, another table
	nested := func(outer error) error {
		_, err := s.transact(t.Context(), claimOf("outer"), func(ctx context.Context) error {
			must(t, effect("outer")(ctx))
			for _, b := range []*bundle{s, other} {
				res, err := b.transact(ctx, claimOf("inner"), func(ctx context.Context) error {
					_, err := b.transact(ctx, claimOf("innermost"), effect("inner"))
					return err
				})
				must(t, err)
				if !res.Claim.Joined {
					t.Error("the nested run did not join")
				}
				_, err = b.transact(ctx, claimOf("inner failed"), func(ctx context.Context) error {
					must(t, effect("inner failed")(ctx))
					return errEffect
				})
				if !errors.Is(err, errEffect) {
					t.Errorf("the nested run ends with %v", err)
				}
			}
			return outer
		})
		return err
	}
	if err := nested(errEffect); !errors.Is(err, errEffect) {
		t.Errorf("the outer run ends with %v", err)
	}
	if n := s.effects("inner"); n != 0 || s.rows() != 0 {
		t.Errorf("%d effects and %d records outlive the outer run", n, s.rows())
	}
	must(t, nested(nil))
	if i, f, o := s.effects("inner"), s.effects("inner failed"), s.effects("outer"); i != 2 || f != 0 || o != 1 {
		t.Errorf("%d inner, %d failed, %d outer effects", i, f, o)
	}
}

// N3.
func TestALeaseInsideAnInboxIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p := claimOf("lease")
	s.mustClaim(p, driver.DecisionClaimed)
	calls := func(ctx context.Context) map[string]error {
		errs := map[string]error{}
		_, errs["Claim"] = s.Claim(ctx, claimOf("new"))
		_, errs["Complete"] = s.Complete(ctx, completionOf(p, "x"))
		_, errs["Release"] = s.Release(ctx, releaseOf(p))
		_, errs["Renew"] = s.Renew(ctx, renewalOf(p, time.Hour))
		_, errs["RenewBatch"] = s.RenewBatch(ctx, driver.RenewBatchParams{Renewals: []driver.RenewParams{renewalOf(p, time.Hour)}})
		_, errs["Purge"] = s.Purge(ctx, driver.PurgeParams{Limit: 1})
		_, errs["Resolve"] = s.Resolve(ctx, driver.ResolveParams{Key: p.Key, Fence: 1, Action: driver.ResolveForget, Format: 1})
		_, errs["Verify"] = s.Verify(ctx, driver.VerifyParams{})
		errs["Migrate"] = s.Migrate(ctx)
		return errs
	}
	check := func(ctx context.Context) {
		started := time.Now()
		for what, err := range calls(ctx) {
			if !errors.Is(err, driver.ErrNested) {
				t.Errorf("%s: %v is not ErrNested", what, err)
			}
		}
		if d := time.Since(started); d > time.Second {
			t.Errorf("the refusals took %v", d)
		}
	}
	_, err := s.transact(t.Context(), claimOf("inbox"), func(ctx context.Context) error {
		check(ctx)
		return nil
	})
	must(t, err)
	tx := s.db.MustBegin()
	check(idemsql.Join(t.Context(), tx))
	must(t, tx.Rollback())
}

func TestALeaseOnAnotherDatabaseInsideAnInboxIsFine(t *testing.T) {
	t.Parallel()
	a, b := setup(t), setup(t)
	_, err := a.transact(t.Context(), claimOf("inbox"), func(ctx context.Context) error {
		p := claimOf("lease")
		if _, err := b.Claim(ctx, p); err != nil {
			return err
		}
		_, err := b.Complete(ctx, completionOf(p, "x"))
		return err
	})
	must(t, err)
	tx := a.db.MustBegin()
	_, err = b.Claim(idemsql.Join(t.Context(), tx), claimOf("joined"))
	must(t, err)
	must(t, tx.Rollback())
}

func TestInspectInsideAnInboxSeesTheTransaction(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.db.SetMaxOpenConns(1)
	_, err := s.transact(t.Context(), claimOf("x"), func(ctx context.Context) error {
		res, err := s.Inspect(ctx, driver.InspectParams{Key: key("x")})
		if err == nil && res.Record.State != driver.StateClaimed {
			t.Errorf("inside, the record is %+v", res)
		}
		return err
	})
	must(t, err)
}

func TestATransactionOfAnotherDatabaseIsNotJoined(t *testing.T) {
	t.Parallel()
	a, b := setup(t), setup(t)
	tx := a.db.MustBegin()
	ctx := idemsql.Join(t.Context(), tx)
	res, err := b.transact(ctx, claimOf("x"), func(ctx context.Context) error {
		inner, err := a.transact(ctx, claimOf("y"), effect("y")) // its own is further out
		if err == nil && !inner.Claim.Joined {
			t.Error("the transaction further out was not joined")
		}
		if err != nil {
			return err
		}
		return effect("x")(ctx)
	})
	must(t, err)
	if res.Claim.Joined {
		t.Error("a transaction of another database was joined")
	}
	must(t, tx.Rollback())
	if n := b.effects("x"); n != 1 {
		t.Errorf("%d effects in the store's own database", n)
	}
	if n := a.effects("y") + a.effects("x"); n != 0 {
		t.Errorf("%d effects in the other one", n)
	}
	b.mustClaim(claimOf("x"), driver.DecisionCompleted)
}

func TestJoinOnAPoolWithoutAConnectionLeftIsAnErrorNotADeadlock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.db.SetMaxOpenConns(1)
	fresh, err := idemsql.New(b.db)
	must(t, err)
	s := &bundle{Store: fresh, t: t, db: b.db, path: b.path}
	tx := b.db.MustBegin()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = s.transact(idemsql.Join(ctx, tx), claimOf("x"), effect("x"))
	if err == nil || ctx.Err() != nil {
		t.Errorf("nobody could know whose transaction it is, but the run ends with %v", err)
	}
	must(t, tx.Rollback())
	_, err = verify(s.Store)
	must(t, err)
	tx = b.db.MustBegin()
	_, err = s.transact(idemsql.Join(t.Context(), tx), claimOf("x"), effect("x"))
	must(t, err)
	must(t, tx.Commit())
}

func TestTwoRunsInOneTransactionTakeTurns(t *testing.T) {
	t.Parallel()
	s := setup(t)
	tx := s.db.MustBegin()
	ctx := idemsql.Join(t.Context(), tx)
	first, finish := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 2)
	go func() {
		_, err := s.transact(ctx, claimOf("a"), func(ctx context.Context) error {
			close(first)
			<-finish
			must(t, effect("a")(ctx))
			return errEffect
		})
		ended <- err
	}()
	<-first
	go func() {
		_, err := s.transact(ctx, claimOf("b"), func(ctx context.Context) error {
			select {
			case <-finish:
			default:
				t.Error("the second run began inside the first one's savepoint")
			}
			return effect("b")(ctx)
		})
		ended <- err
	}()
	time.AfterFunc(20*time.Millisecond, func() { close(finish) })
	if err := errors.Join(<-ended, <-ended); !errors.Is(err, errEffect) {
		t.Error(err)
	}
	must(t, tx.Commit())
	if a, b := s.effects("a"), s.effects("b"); a != 0 || b != 1 {
		t.Errorf("%d effects of the failed run, %d of the other", a, b)
	}
}

func TestAJoinedRunOnAnOldSnapshotIsAConflict(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/deferred.db"
	s := setupDSN(t, path, "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(1000)", idemsql.WithClaimMode(idemsql.ClaimFirst))
	_, err := verify(s.Store)
	must(t, err)
	tx := s.db.MustBegin()
	var n int
	must(t, tx.Get(&n, "SELECT count(*) FROM effects")) // the snapshot
	s.mustClaim(claimOf("between"), driver.DecisionClaimed)
	_, err = s.transact(idemsql.Join(t.Context(), tx), claimOf("x"), effect("x"))
	if !errors.Is(err, driver.ErrConflict) {
		t.Errorf("%v is not ErrConflict", err)
	}
	must(t, tx.Rollback())
}

func TestInTxHandsTheTransactionOver(t *testing.T) {
	t.Parallel()
	s := setup(t)
	write := idemsql.InTx(func(ctx context.Context, tx *sqlx.Tx) (string, error) {
		_, err := tx.ExecContext(ctx, "INSERT INTO effects VALUES ('x')")
		return "written", err
	})
	if _, err := write(t.Context()); err == nil {
		t.Error("InTx runs without a transaction")
	}
	_, err := s.transact(t.Context(), claimOf("x"), func(ctx context.Context) error {
		v, err := write(ctx)
		if v != "written" {
			t.Errorf("InTx returns %q", v)
		}
		return err
	})
	must(t, err)
	if n := s.effects("x"); n != 1 {
		t.Errorf("%d effects", n)
	}
	if _, ok := idemsql.Tx(t.Context()); ok {
		t.Error("there is a transaction in an empty context")
	}
}

// Else its savepoints would be numbered from the beginning again.
func TestJoiningTheTransactionThatIsThereChangesNothing(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, err := s.transact(t.Context(), claimOf("x"), func(ctx context.Context) error {
		tx, _ := idemsql.Tx(ctx)
		if idemsql.Join(ctx, tx) != ctx {
			t.Error("the context is another one")
		}
		return nil
	})
	must(t, err)
}

func TestJoinWithoutATransactionPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("Join takes nil")
		}
	}()
	idemsql.Join(t.Context(), nil)
}
