package idem_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	idemsql "github.com/idem-go/idem/drivers/sql"
)

// ledger is a SQLite store with a table of effects, whose transactions fail
// where they are told to.
type ledger struct {
	*idemsql.Store

	db *sqlx.DB

	mu    sync.Mutex
	hooks []transactHook // of the next transactions, one each
	calls int
}

// transactHook answers a transaction; do takes it.
type transactHook func(do func() (driver.TransactResult, error)) (driver.TransactResult, error)

func newLedger(t *testing.T) *ledger {
	t.Helper()
	db := sqlx.MustOpen("sqlite", idemsql.SQLiteDSN(filepath.Join(t.TempDir(), "ledger.db")))
	t.Cleanup(func() { _ = db.Close() })
	store, err := idemsql.New(db)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	db.MustExec("CREATE TABLE effects (id TEXT NOT NULL)")
	return &ledger{Store: store, db: db}
}

func (l *ledger) Transact(ctx context.Context, p driver.TransactParams, fn driver.TransactFunc) (driver.TransactResult, error) {
	l.mu.Lock()
	l.calls++
	var h transactHook
	if len(l.hooks) > 0 {
		h, l.hooks = l.hooks[0], l.hooks[1:]
	}
	l.mu.Unlock()
	do := func() (driver.TransactResult, error) { return l.Store.Transact(ctx, p, fn) }
	if h == nil {
		return do()
	}
	return h(do)
}

// book is a function with one effect.
func book(ctx context.Context) (receipt, error) {
	tx, ok := idemsql.Tx(ctx)
	if !ok {
		return receipt{}, errors.New("no transaction")
	}
	a, _ := idem.FromContext(ctx)
	_, err := tx.ExecContext(ctx, "INSERT INTO effects (id) VALUES (?)", a.Key())
	return receipt{Amount: 500}, err
}

func (l *ledger) effects(t *testing.T, key string) (n int) {
	t.Helper()
	if err := l.db.Get(&n, "SELECT count(*) FROM effects WHERE id = ?", key); err != nil {
		t.Fatal(err)
	}
	return n
}

func (l *ledger) wantOnce(t *testing.T, op *idem.Operation) {
	t.Helper()
	got, err := idem.ExecuteResult(t.Context(), "pay-42", book, idem.On(op))
	if err != nil || !got.Replayed || got.Value.Amount != 500 {
		t.Fatalf("the duplicate has %+v, %v", got, err)
	}
	if n := l.effects(t, "pay-42"); n != 1 {
		t.Fatalf("%d effects", n)
	}
}

func TestInboxCommitsEffectAndRecordTogether(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	op := operationOn(t, l, idem.ExactlyOnce)
	_, err := idem.Execute(t.Context(), "pay-42", func(ctx context.Context) (receipt, error) {
		_, _ = book(ctx)
		return receipt{}, errDeclined
	}, idem.On(op))
	if err != errDeclined || l.effects(t, "pay-42") != 0 { //nolint:errorlint // unchanged
		t.Fatalf("%v, %d effects after a failure", err, l.effects(t, "pay-42"))
	}
	first, err := idem.ExecuteResult(t.Context(), "pay-42", book, idem.On(op))
	if err != nil || !first.Recorded || first.Replayed || first.CompletedAt.IsZero() || first.Attempt != 1 {
		t.Fatalf("%+v, %v", first, err)
	}
	l.wantOnce(t, op)
}

func TestLostReplyOfACommitIsSettledByClaimingAgain(t *testing.T) {
	t.Parallel()
	for name, hooks := range map[string][]transactHook{
		"at once":                  {committed},
		"after the store was away": {committed, gone, gone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			l.hooks = hooks
			op := operationOn(t, l, idem.ExactlyOnce)
			res, err := idem.ExecuteResult(t.Context(), "pay-42", book, idem.On(op))
			if err != nil || !res.Recorded || res.Value.Amount != 500 {
				t.Fatalf("%+v, %v", res, err)
			}
			l.wantOnce(t, op)
		})
	}
}

// committed takes the transaction and loses the reply.
func committed(do func() (driver.TransactResult, error)) (driver.TransactResult, error) {
	res, _ := do()
	return res, fmt.Errorf("%w: connection reset", driver.ErrUnknown)
}

// gone does not reach the store.
func gone(func() (driver.TransactResult, error)) (driver.TransactResult, error) {
	return driver.TransactResult{}, errCut
}

func TestConflictRunsTheWholeTransactionAgain(t *testing.T) { // CASES S3
	t.Parallel()
	l := newLedger(t)
	op := operationOn(t, l, idem.ExactlyOnce)
	runs := 0
	got, err := idem.Execute(t.Context(), "pay-42", func(ctx context.Context) (receipt, error) {
		if runs++; runs < 3 {
			_, _ = book(ctx)
			return receipt{}, fmt.Errorf("deadlock: %w", driver.ErrConflict) // as a driver reports the function's statement
		}
		return book(ctx)
	}, idem.On(op))
	if err != nil || got.Amount != 500 || runs != 3 {
		t.Fatalf("%v, %v, %d runs", got, err, runs)
	}
	l.wantOnce(t, op)
}

func TestRunThatWasRolledBackKeepsItsFence(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	op := operationOn(t, l, idem.ExactlyOnce)
	var first *idem.Attempt
	var fence int64
	_, err := idem.Execute(t.Context(), "pay-42", func(ctx context.Context) (receipt, error) {
		if first == nil {
			first, _ = idem.FromContext(ctx)
			fence = first.Fence()
			time.Sleep(time.Millisecond) // fences count microseconds
			return receipt{}, driver.ErrConflict
		}
		return book(ctx)
	}, idem.On(op))
	if err != nil || fence == 0 || first.Fence() != fence {
		t.Fatalf("%v: the run has the fence %d, then %d", err, fence, first.Fence())
	}
}

func TestUndecidedCommitIsAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.hooks = append(l.hooks, committed)
	for range 1000 {
		l.hooks = append(l.hooks, gone)
	}
	op := operationOn(t, l, idem.ExactlyOnce)
	start := time.Now()
	_, err := idem.Execute(t.Context(), "pay-42", book, idem.On(op))
	if e := idemError(t, err, idem.ErrOutcomeUnknown); e.Final || !e.Retryable() {
		t.Fatalf("%+v", e)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Fatal("it took", took)
	}
	l.hooks = nil
	l.wantOnce(t, op)
}

func TestStoreFailureBeforeAnInboxRunsNothing(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.hooks = append(l.hooks, gone)
	op, pay := operationOn(t, l, idem.ExactlyOnce), new(charge)
	_, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op))
	if wantError(t, err, idem.ErrStore); !errors.Is(err, errCut) || pay.runs.Load() != 0 {
		t.Fatal(err, pay.runs.Load())
	}
}

func TestLeaseInsideAnInboxOfTheSameFileIsRefusedAtOnce(t *testing.T) { // CASES N3, rule 15
	t.Parallel()
	l := newLedger(t)
	inbox := operationOn(t, l, idem.ExactlyOnce)
	lease, err := idem.NewOperation("mails", l, idem.AtLeastOnce)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	err = idem.Do(t.Context(), "pay-42", func(ctx context.Context) error {
		return idem.Do(ctx, "mail-42", func(context.Context) error { return nil }, idem.On(lease))
	}, idem.On(inbox))
	wantError(t, err, idem.ErrConfig)
	// The caller's own transaction is found by the driver.
	tx := l.db.MustBegin()
	err = idem.Do(idemsql.Join(t.Context(), tx), "mail-43", func(context.Context) error { return nil }, idem.On(lease))
	wantError(t, err, idem.ErrConfig)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Fatal("it waited", took)
	}
}

func TestInboxInsideAnInboxJoinsIt(t *testing.T) { // rule 15
	t.Parallel()
	l := newLedger(t)
	outer := operationOn(t, l, idem.ExactlyOnce)
	inner, err := idem.NewOperation("lines", l, idem.ExactlyOnce)
	if err != nil {
		t.Fatal(err)
	}
	call := func(fail error) error {
		return idem.Do(t.Context(), "pay-42", func(ctx context.Context) error {
			res, err := idem.ExecuteResult(ctx, "line-1", book, idem.On(inner))
			if err != nil || res.Recorded {
				t.Errorf("inside: %+v, %v", res, err)
			}
			return fail
		}, idem.On(outer))
	}
	if err := call(errDeclined); !errors.Is(err, errDeclined) || l.effects(t, "line-1") != 0 {
		t.Fatalf("%v, %d effects of a part whose whole was rolled back", err, l.effects(t, "line-1"))
	}
	if err := call(nil); err != nil || l.effects(t, "line-1") != 1 {
		t.Fatalf("%v, %d effects", err, l.effects(t, "line-1"))
	}
	res, err := idem.ExecuteResult(t.Context(), "line-1", book, idem.On(inner))
	if err != nil || !res.Replayed || l.effects(t, "line-1") != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
}

func TestJoinedInboxIsKeptOrLostWithTheCallersTransaction(t *testing.T) { // CASES S18
	t.Parallel()
	l := newLedger(t)
	op := operationOn(t, l, idem.ExactlyOnce)
	for _, commit := range []bool{false, true} {
		tx := l.db.MustBegin()
		res, err := idem.ExecuteResult(idemsql.Join(t.Context(), tx), "pay-42", book, idem.On(op))
		if err != nil || res.Recorded || res.Replayed {
			t.Fatalf("%+v, %v", res, err)
		}
		end := tx.Rollback
		if commit {
			end = tx.Commit
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	l.wantOnce(t, op)
}

func TestInboxRefusesDoNotRecord(t *testing.T) { // rule 19
	t.Parallel()
	op := operationOn(t, newLedger(t), idem.ExactlyOnce)
	err := idem.Do(t.Context(), "pay-42", func(ctx context.Context) error {
		a, _ := idem.FromContext(ctx)
		if err := a.Extend(ctx, time.Second); !errors.Is(err, errors.ErrUnsupported) {
			t.Error("Extend:", err)
		}
		return a.DoNotRecord()
	}, idem.On(op))
	wantError(t, err, idem.ErrConfig)
}

func TestWaiterOfAnInboxHasItsResult(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	op, other := operationOn(t, l, idem.ExactlyOnce), operationOn(t, l, idem.ExactlyOnce)
	entered, leave := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := idem.Execute(t.Context(), "pay-42", func(ctx context.Context) (receipt, error) {
			close(entered)
			<-leave
			return book(ctx)
		}, idem.On(op))
		if err != nil {
			t.Error(err)
		}
	})
	<-entered
	for _, op := range []*idem.Operation{op, other} { // from memory, and from the store
		_, err := idem.Execute(t.Context(), "pay-42", book, idem.On(op))
		if e := idemError(t, err, idem.ErrInProgress); e.RetryAfter <= 0 {
			t.Errorf("%+v", e)
		}
		wg.Go(func() {
			res, err := idem.ExecuteResult(t.Context(), "pay-42", book, idem.On(op), idem.WithWait(time.Minute))
			if err != nil || !res.Replayed {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
	close(leave)
	wg.Wait()
	l.wantOnce(t, op)
}

func TestValueOfARunThatWasUndoneIsNotReturned(t *testing.T) {
	t.Parallel()
	busy := func(do func() (driver.TransactResult, error)) (driver.TransactResult, error) {
		_, _ = do()
		return driver.TransactResult{}, driver.ErrBusy
	}
	taken := func(func() (driver.TransactResult, error)) (driver.TransactResult, error) {
		return driver.TransactResult{Claim: driver.ClaimResult{Decision: driver.DecisionInFlight}}, nil
	}
	ran := func(context.Context) (receipt, error) { return receipt{Amount: 500}, nil }
	for reason, hooks := range map[error][]transactHook{
		idem.ErrStore:      {busy, gone},
		idem.ErrInProgress: {busy, taken},
	} {
		l := newLedger(t)
		l.hooks = hooks
		got, err := idem.Execute(t.Context(), "pay-42", ran, idem.On(operationOn(t, l, idem.ExactlyOnce)))
		if wantError(t, err, reason); got != (receipt{}) {
			t.Errorf("%v beside %+v", err, got)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		u := &undecided{Store: newMemory(t)}
		got, err := idem.Execute(t.Context(), "pay-42", ran, idem.On(operationOn(t, u, idem.ExactlyOnce)))
		if wantError(t, err, idem.ErrOutcomeUnknown); got != (receipt{}) || len(u.asked) < 3 || u.runs != 1 {
			t.Errorf("%v beside %+v, asked %d times, %d runs", err, got, len(u.asked), u.runs)
		}
		for _, ctx := range u.asked[1:] {
			if ctx.Err() == nil {
				t.Error("the context in which the commit was settled was never ended")
			}
		}
	})
}

func TestCommitsThatAllGetLostEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := &undecided{Store: newMemory(t), again: true}
		err := idem.Do(t.Context(), "pay-42", func(context.Context) error { return nil }, idem.On(operationOn(t, u, idem.ExactlyOnce)))
		if wantError(t, err, idem.ErrOutcomeUnknown); u.runs > 20 {
			t.Error(u.runs, "runs")
		}
	})
}

// undecided is an inbox whose replies get lost, after the first or after
// every run of the function.
type undecided struct {
	*idemmemory.Store

	again bool
	runs  int
	asked []context.Context
}

func (u *undecided) Capabilities() driver.Capabilities {
	caps := u.Store.Capabilities()
	caps.Guarantees |= driver.GuaranteeSet(driver.ExactlyOnce)
	return caps
}

func (u *undecided) Transact(ctx context.Context, _ driver.TransactParams, fn driver.TransactFunc) (driver.TransactResult, error) {
	u.asked = append(u.asked, ctx)
	if u.runs == 0 || u.again {
		u.runs++
		if _, err := fn(ctx, driver.ClaimResult{Decision: driver.DecisionClaimed, Fence: 1, Attempt: 1}); err != nil {
			return driver.TransactResult{}, err
		}
	}
	return driver.TransactResult{}, driver.ErrUnknown
}
