package idemsql_test

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem/driver"
	idemsql "github.com/idem-go/idem/drivers/sql"
)

var errEffect = errors.New("the effect failed")

// unchanged checks that a run left nothing behind and that the store works on.
func (b *bundle) unchanged(what, id string) {
	b.t.Helper()
	if n := b.effects(id); n != 0 {
		b.t.Errorf("%s: %d effects are there", what, n)
	}
	if n := b.rows(); n != 0 {
		b.t.Errorf("%s: %d records are there", what, n)
	}
	ran := false
	res, err := b.transact(context.Background(), claimOf(id), func(context.Context) error { ran = true; return errEffect })
	if !errors.Is(err, errEffect) || !ran {
		b.t.Errorf("%s: afterwards the key answers %v, %v", what, res.Claim.Decision, err)
	}
	if n := b.db.Stats().InUse; n != 0 {
		b.t.Errorf("%s: %d connections are still in use", what, n)
	}
}

func TestHoweverFnFailsNothingIsLeft(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.db.SetMaxOpenConns(1) // a connection that is not healthy again would be noticed
	for what, fail := range map[string]func(ctx context.Context) error{
		"an error": func(context.Context) error { return errEffect },
		"a panic":  func(context.Context) error { panic(errEffect) },
		"Goexit":   func(context.Context) error { runtime.Goexit(); return nil },
	} {
		ended := make(chan any, 1)
		go func() {
			exited := true
			var err error
			defer func() {
				if v := recover(); v != nil {
					ended <- v
				} else if exited {
					ended <- errEffect
				} else {
					ended <- err
				}
			}()
			_, err = s.transact(t.Context(), claimOf(what), func(ctx context.Context) error {
				must(t, effect(what)(ctx))
				return fail(ctx)
			})
			exited = false
		}()
		if got := <-ended; got != any(errEffect) {
			t.Errorf("%s comes out as %v", what, got)
		}
		s.unchanged(what, what)
	}
}

// S12.
func TestACancelledEffectLeavesNothingAndAHealthyConnection(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.db.SetMaxOpenConns(1)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.transact(ctx, claimOf("x"), func(ctx context.Context) error {
		must(t, effect("x")(ctx))
		tx, _ := idemsql.Tx(ctx)
		time.AfterFunc(300*time.Millisecond, cancel) // when the statement has certainly begun
		_, err := tx.ExecContext(ctx, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "+
			"INSERT INTO effects SELECT 'x' FROM n")
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the run ends with %v", err)
	}
	s.unchanged("a cancelled effect", "x")
}

// Rule 11.
func TestCancellationAfterTheEffectDoesNotUndoIt(t *testing.T) {
	t.Parallel()
	s := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.transact(ctx, claimOf("x"), func(ctx context.Context) error {
		must(t, effect("x")(ctx))
		cancel()
		<-ctx.Done()
		return nil
	})
	must(t, err)
	if n := s.effects("x"); n != 1 {
		t.Errorf("%d effects", n)
	}
	s.mustClaim(claimOf("x"), driver.DecisionCompleted)
}

func TestCancelledBeforeFnNothingRuns(t *testing.T) {
	t.Parallel()
	s := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.transact(ctx, claimOf("x"), func(context.Context) error {
		t.Error("fn ran")
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the run ends with %v", err)
	}
	s.unchanged("cancelled before fn", "x")
}

func TestAnInterruptedStatementThatFnHidesFailsTheRun(t *testing.T) {
	t.Parallel()
	s := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.transact(ctx, claimOf("x"), func(ctx context.Context) error {
		tx, _ := idemsql.Tx(ctx)
		time.AfterFunc(300*time.Millisecond, cancel) // when the statement has certainly begun
		_, err := tx.ExecContext(ctx, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "+
			"INSERT INTO effects SELECT 'x' FROM n")
		if err == nil {
			t.Error("the endless statement ended")
		}
		return nil
	})
	if err == nil || errors.Is(err, driver.ErrConflict) || errors.Is(err, driver.ErrUnknown) {
		t.Errorf("the run ends with %v: it must fail, and nobody may run it again unasked", err)
	}
	s.unchanged("a hidden interrupt", "x")
}

func TestDuplicatesInOneProcessAreInFlightAtOnce(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.db.SetMaxOpenConns(2)
	entered, finish := make(chan struct{}), make(chan struct{})
	ended := make(chan error)
	go func() {
		_, err := s.transact(t.Context(), claimOf("x"), func(context.Context) error {
			close(entered)
			<-finish
			return nil
		})
		ended <- err
	}()
	<-entered
	started := time.Now()
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			var res driver.ClaimResult
			var err error
			if i%2 == 0 {
				res, err = s.Claim(t.Context(), claimOf("x"))
			} else {
				var r driver.TransactResult
				r, err = s.transact(t.Context(), claimOf("x"), func(context.Context) error {
					t.Error("a duplicate ran")
					return nil
				})
				res = r.Claim
			}
			if err != nil || res.Decision != driver.DecisionInFlight || res.LeaseLeft <= 0 {
				t.Errorf("a duplicate gets %v, %v left, %v", res.Decision, res.LeaseLeft, err)
			}
		})
	}
	wg.Wait()
	if d := time.Since(started); d > 2*time.Second {
		t.Errorf("50 duplicates took %v", d)
	}
	close(finish)
	must(t, <-ended)
	s.mustClaim(claimOf("x"), driver.DecisionCompleted)
}

func TestFiftyCallersOneEffect(t *testing.T) {
	t.Parallel()
	s := setup(t)
	peer := setupAt(t, s.path)
	var ran atomic.Int64
	var wg sync.WaitGroup
	for i := range 50 {
		b := []*bundle{s, peer}[i%2]
		wg.Go(func() {
			for {
				res, err := b.transact(t.Context(), claimOf("x"), func(ctx context.Context) error {
					ran.Add(1)
					return effect("x")(ctx)
				})
				if err != nil {
					t.Error(err)
					return
				}
				if res.Claim.Decision != driver.DecisionInFlight {
					return
				}
				runtime.Gosched()
			}
		})
	}
	wg.Wait()
	if ran.Load() != 1 || s.effects("x") != 1 {
		t.Errorf("fn ran %d times, %d effects", ran.Load(), s.effects("x"))
	}
}

// Rule 29: what cannot be known is said to be unknown, and settled by the same token.
func TestALostReplyToCommitIsUnknownAndSettledByTheSameToken(t *testing.T) {
	t.Parallel()
	s, r := record(t)
	p := claimOf("x")
	r.lose("COMMIT", sqldriver.ErrBadConn)
	_, err := s.transact(t.Context(), p, effect("x"))
	if !errors.Is(err, driver.ErrUnknown) {
		t.Errorf("%v is not ErrUnknown", err)
	}
	res, err := s.transact(t.Context(), p, func(context.Context) error {
		t.Error("fn ran again")
		return nil
	})
	must(t, err)
	if res.Claim.Decision != driver.DecisionCompleted || !res.Claim.Own || s.effects("x") != 1 {
		t.Errorf("the same token gets %+v, %d effects", res.Claim, s.effects("x"))
	}
}

func TestADeferredConstraintFailsTheCommitForSure(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.db.MustExec("CREATE TABLE parent (id INTEGER PRIMARY KEY)")
	s.db.MustExec("CREATE TABLE child (id INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED)")
	s.db.SetMaxOpenConns(1)
	s.db.MustExec("PRAGMA foreign_keys = ON")
	_, err := s.transact(t.Context(), claimOf("x"), func(ctx context.Context) error {
		tx, _ := idemsql.Tx(ctx)
		tx.MustExec("INSERT INTO child VALUES (1)")
		return nil
	})
	if err == nil || errors.Is(err, driver.ErrUnknown) || errors.Is(err, driver.ErrConflict) {
		t.Errorf("the run ends with %v", err)
	}
	if k := idemsql.Classify(err); k != driver.KindDomain {
		t.Errorf("the failure is %v", k)
	}
	s.unchanged("a deferred constraint", "x")
}

func TestFnThatEndsItsTransactionIsToldAndNeverRunsAgain(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, err := s.transact(t.Context(), claimOf("x"), func(ctx context.Context) error {
		must(t, effect("x")(ctx))
		tx, _ := idemsql.Tx(ctx)
		return tx.Commit()
	})
	if err == nil || errors.Is(err, driver.ErrUnknown) || errors.Is(err, driver.ErrConflict) {
		t.Errorf("a commit by fn ends with %v", err)
	}
	s.mustClaim(claimOf("x"), driver.DecisionCompleted)
	_, err = s.transact(t.Context(), claimOf("y"), func(ctx context.Context) error {
		must(t, effect("y")(ctx))
		tx, _ := idemsql.Tx(ctx)
		return tx.Rollback()
	})
	if err == nil {
		t.Error("a rollback by fn is a success")
	}
	s.mustClaim(claimOf("y"), driver.DecisionClaimed)
}

func TestATransactionCompletesItsOwnClaimOnly(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for what, change := range map[string]func(c *driver.CompleteParams){
		"another key":   func(c *driver.CompleteParams) { c.Key.ID = "other" },
		"another token": func(c *driver.CompleteParams) { c.Token = newToken() },
		"no outcome":    func(c *driver.CompleteParams) { c.Outcome = nil },
	} {
		p := claimOf("x")
		_, err := s.Transact(t.Context(), driver.TransactParams{Claim: p},
			func(ctx context.Context, _ driver.ClaimResult) (driver.CompleteParams, error) {
				c := completionOf(p, "x")
				change(&c)
				return c, effect("x")(ctx)
			})
		if !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%s: %v is not ErrInvalid", what, err)
		}
		s.unchanged(what, "x")
	}
}

func TestATakeoverInTheInboxHappensOnceAndRollsBack(t *testing.T) {
	t.Parallel()
	s := setup(t)
	old := claimOf("x")
	old.Lease = time.Millisecond
	first := s.mustClaim(old, driver.DecisionClaimed)
	time.Sleep(5 * time.Millisecond)
	for _, mode := range []idemsql.ClaimMode{idemsql.ClaimFirst, idemsql.ReadFirst} {
		b := setupPool(t, s.path, s.db, idemsql.WithClaimMode(mode))
		res, err := b.transact(t.Context(), claimOf("x"), func(context.Context) error { return errEffect })
		if !errors.Is(err, errEffect) || !res.Claim.TookOver || res.Claim.Attempt != 2 {
			t.Errorf("%v: %+v, %v", mode, res.Claim, err)
		}
		rec, err := b.Inspect(t.Context(), driver.InspectParams{Key: key("x")})
		must(t, err)
		if rec.Record.Fence != first.Fence || rec.Record.Attempt != 1 {
			t.Errorf("%v: the record was not rolled back: %+v", mode, rec.Record)
		}
	}
}

// S11: database/sql sends a statement again after a bad connection.
func TestAStatementSentTwiceKnowsItself(t *testing.T) {
	t.Parallel()
	s, r := record(t)
	p := claimOf("x")
	r.lose("INSERT", sqldriver.ErrBadConn)
	if res := s.mustClaim(p, driver.DecisionClaimed); !res.Own || res.Attempt != 1 {
		t.Errorf("the claim sent twice gets %+v", res)
	}
	r.lose("UPDATE", sqldriver.ErrBadConn)
	_, err := s.Renew(t.Context(), renewalOf(p, time.Hour))
	must(t, err)
	r.lose("UPDATE", sqldriver.ErrBadConn)
	if res := s.mustComplete(p, "x"); !res.Already {
		t.Errorf("the completion sent twice gets %+v", res)
	}
	q := claimOf("y")
	s.mustClaim(q, driver.DecisionClaimed)
	r.lose("UPDATE", sqldriver.ErrBadConn)
	_, err = s.Release(t.Context(), releaseOf(q))
	must(t, err)
	q.Token = newToken()
	r.lose("UPDATE", sqldriver.ErrBadConn) // takes the stub
	if res := s.mustClaim(q, driver.DecisionClaimed); !res.Own || res.Attempt != 2 {
		t.Errorf("the claim sent twice gets %+v", res)
	}
}

// completeWith is an inbox without an effect.
func completeWith(p driver.ClaimParams, outcome []byte) driver.TransactFunc {
	return func(context.Context, driver.ClaimResult) (driver.CompleteParams, error) {
		return completionOf(p, string(outcome)), nil
	}
}

func newID() string { return fmt.Sprintf("%x", newToken()) }
