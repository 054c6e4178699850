package idem_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
)

// busy holds pay-42 in another process, so to say: through an operation of
// its own on the same store. It ends with err after d.
func busy(t *testing.T, d driver.Driver, g idem.Guarantee, after time.Duration, err error) {
	t.Helper()
	other := operationOn(t, d, g)
	entered, over := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); <-over })
	go func() {
		defer close(over)
		_, _ = idem.Execute(ctx, "pay-42", func(ctx context.Context) (receipt, error) {
			close(entered)
			select {
			case <-ctx.Done():
			case <-time.After(after):
			}
			return receipt{Amount: 7}, err
		}, idem.On(other))
	}()
	<-entered
}

func TestWaiterHasTheResultWithinAPoll(t *testing.T) { // CASES L12
	t.Parallel()
	for _, g := range []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce} {
		synctest.Test(t, func(t *testing.T) {
			store, pay := newSpy(t), new(charge)
			busy(t, store, g, time.Second, nil)
			start := time.Now()
			got, err := idem.Execute(t.Context(), "pay-42", pay.run,
				idem.On(operationOn(t, store, g)), idem.WithWait(5*time.Second))
			if err != nil || got.Amount != 7 || pay.runs.Load() != 0 {
				t.Fatalf("%v: %v, %v, %d runs", g, got, err, pay.runs.Load())
			}
			if took := time.Since(start); took > 1400*time.Millisecond {
				t.Fatalf("%v: the waiter waited %v for a run of 1 s", g, took)
			}
		})
	}
}

func TestWaitIsBounded(t *testing.T) {
	t.Parallel()
	for g, reason := range map[idem.Guarantee]error{
		idem.AtLeastOnce: idem.ErrInProgress, idem.AtMostOnce: idem.ErrOutcomeUnknown,
	} {
		synctest.Test(t, func(t *testing.T) {
			store := newSpy(t)
			busy(t, store, g, time.Minute, nil)
			start := time.Now()
			_, err := idem.Execute(t.Context(), "pay-42", new(charge).run,
				idem.On(operationOn(t, store, g)), idem.WithWait(200*time.Millisecond))
			e := idemError(t, err, reason)
			if took := time.Since(start); took < 200*time.Millisecond || took > 300*time.Millisecond {
				t.Fatalf("%v: waited %v instead of 200 ms", g, took)
			}
			if e.Final || !e.Retryable() || e.RetryAfter <= 0 || e.RetryAfter > idem.DefaultLeaseTTL {
				t.Fatalf("%v: %+v", g, e)
			}
		})
	}
}

func TestThousandWaitersAskTheStoreAsOne(t *testing.T) { // CASES L12
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newSpy(t)
		busy(t, store, idem.AtLeastOnce, 5*time.Second, errors.Join(context.DeadlineExceeded)) // released
		op := operationOn(t, store, idem.AtLeastOnce)
		pay := new(charge)
		var wg sync.WaitGroup
		var answers atomic.Int64
		for i := range 1000 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond) // their waits end one after another
				got, err := idem.Execute(t.Context(), "pay-42", func(ctx context.Context) (receipt, error) {
					time.Sleep(100 * time.Millisecond)
					return pay.run(ctx)
				}, idem.On(op), idem.WithWait(4700*time.Millisecond))
				if err == nil && got.Amount == 1 {
					answers.Add(1)
				} else {
					wantError(t, err, idem.ErrInProgress)
				}
			})
		}
		wg.Wait()
		if n := pay.runs.Load(); n != 1 {
			t.Fatalf("%d of the waiters ran", n)
		}
		if n := answers.Load(); n < 200 {
			t.Fatalf("only %d of 1000 had the answer", n)
		}
		if n := store.claimed.Load(); n > 60 {
			t.Fatalf("1000 waiters asked the store %d times in 5 s", n)
		}
	})
}

func TestDuplicatesInOneProcessAskTheStoreOnce(t *testing.T) { // CASES N8, L6
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, pay := newSpy(t), new(charge)
		op := operationOn(t, store, idem.AtLeastOnce)
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				got, err := idem.Execute(t.Context(), "pay-42", func(ctx context.Context) (receipt, error) {
					time.Sleep(50 * time.Millisecond)
					return pay.run(ctx)
				}, idem.On(op), idem.WithWait(time.Second))
				if err != nil || got.Amount != 1 {
					t.Error(got, err)
				}
			})
		}
		wg.Wait()
		if pay.runs.Load() != 1 || store.claimed.Load() != 1 {
			t.Fatalf("%d runs, %d claims", pay.runs.Load(), store.claimed.Load())
		}
	})
}

func TestFollowersShareNoPointers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		op := newOperation(t, idem.AtLeastOnce)
		call := func() *receipt {
			got, err := idem.Execute(t.Context(), "pay-42", func(context.Context) (*receipt, error) {
				time.Sleep(time.Second)
				return &receipt{Amount: 1}, nil
			}, idem.On(op), idem.WithWait(time.Minute))
			if err != nil {
				t.Error(err)
			}
			return got
		}
		var first *receipt
		var wg sync.WaitGroup
		wg.Go(func() { first = call() })
		synctest.Wait()
		second := call()
		wg.Wait()
		if first == second || *first != *second {
			t.Fatalf("%p %v and %p %v", first, first, second, second)
		}
	})
}

func TestMismatchIsRefusedOnEveryPath(t *testing.T) { // CASES K4
	t.Parallel()
	right, wrong := idem.WithFingerprint("500 EUR"), idem.WithFingerprint("900 EUR")
	synctest.Test(t, func(t *testing.T) {
		store, pay := newSpy(t), new(charge)
		op := operationOn(t, store, idem.AtLeastOnce, idem.WithLeaseTTL(time.Second), idem.WithWait(time.Minute))
		other := operationOn(t, store, idem.AtLeastOnce, idem.WithWait(time.Minute))
		refused := func(path string, op *idem.Operation, opts ...idem.ExecuteOption) {
			t.Helper()
			start := time.Now()
			_, err := idem.Execute(t.Context(), "pay-42", pay.run, append(opts, idem.On(op), wrong)...)
			if wantError(t, err, idem.ErrMismatch); time.Since(start) > 0 {
				t.Errorf("%s: it waited before it refused", path)
			}
		}
		// A first owner dies; its lease lapses.
		store.set(&store.completes, fails)
		go func() {
			_, _ = idem.Execute(context.Background(), "pay-42", func(ctx context.Context) (receipt, error) {
				time.Sleep(100 * time.Millisecond)
				return pay.run(ctx)
			}, idem.On(op), right)
		}()
		synctest.Wait()
		refused("local", op)
		refused("in flight", other)
		refused("in flight, no wait", other, idem.WithWait(0))
		time.Sleep(10 * time.Second) // the recording has given up, the lease is over
		store.set(&store.completes, nil)
		refused("takeover", other)
		if _, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op), right); err != nil {
			t.Fatal("the right payload could not take over:", err)
		}
		refused("replay", other)
		if got, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(other), right); err != nil || got.Amount != 2 {
			t.Fatal("the right payload does not replay:", got, err)
		}
	})
}

func TestStoreFailureIsSharedWithThoseWhoWaitForItsAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := func(context.Context, func() error) error { time.Sleep(100 * time.Millisecond); return errCut }
		store, pay := newSpy(t), new(charge)
		store.claims = append(store.claims, slow, slow, slow)
		op := operationOn(t, store, idem.AtLeastOnce)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				_, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op))
				wantError(t, err, idem.ErrStore)
			})
		}
		wg.Wait()
		if n := store.claimed.Load(); n != 3 || pay.runs.Load() != 0 {
			t.Fatalf("%d claims, %d runs", n, pay.runs.Load())
		}
	})
}

func TestCancelledLeaderDoesNotEndItsFollowers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, pay := newSpy(t), new(charge)
		store.claims = append(store.claims, func(ctx context.Context, _ func() error) error { <-ctx.Done(); return ctx.Err() })
		op := operationOn(t, store, idem.AtLeastOnce)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := idem.Execute(ctx, "pay-42", pay.run, idem.On(op))
			wantError(t, err, idem.ErrStore)
		})
		synctest.Wait()
		wg.Go(func() {
			if _, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op)); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		cancel()
		wg.Wait()
		if pay.runs.Load() != 1 {
			t.Fatal(pay.runs.Load(), "runs")
		}
	})
}

// after returns a hook that takes the step after d.
func after(d time.Duration) hook {
	return func(_ context.Context, do func() error) error { time.Sleep(d); return do() }
}

func TestFollowerWaitsAsLongAsItWantsForASlowStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, pay := newSpy(t), new(charge)
		store.claims = append(store.claims, after(5*time.Second))
		op := operationOn(t, store, idem.AtLeastOnce)
		var wg sync.WaitGroup
		for _, wait := range []time.Duration{0, 10 * time.Second} {
			wg.Go(func() {
				got, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op), idem.WithWait(wait))
				if err != nil || got.Amount != 1 {
					t.Error(wait, got, err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
	})
}

func TestAnswerIsNotFinalBeforeTheStoreHasSpoken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, pay := newSpy(t), new(charge)
		store.claims = append(store.claims, func(ctx context.Context, do func() error) error {
			_ = after(5*time.Second)(ctx, do)
			return driver.ErrBusy
		})
		op := operationOn(t, store, idem.AtMostOnce, idem.WithoutOutcomes())
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op))
			wantError(t, err, idem.ErrStore)
		})
		synctest.Wait()
		_, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op))
		if e := idemError(t, err, idem.ErrOutcomeUnknown); e.Final || !e.Retryable() || e.RetryAfter <= 0 {
			t.Errorf("%+v", e)
		}
		wg.Wait()
	})
}

func TestDuplicatesThatDoNotWaitShareOneQuestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newSpy(t)
		busy(t, store, idem.AtLeastOnce, time.Minute, nil)
		op := operationOn(t, store, idem.AtLeastOnce)
		before := store.claimed.Load()
		store.claims = append(store.claims, after(20*time.Millisecond))
		start := time.Now()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				_, err := idem.Execute(t.Context(), "pay-42", new(charge).run, idem.On(op))
				wantError(t, err, idem.ErrInProgress)
			})
		}
		wg.Wait()
		if took, n := time.Since(start), store.claimed.Load()-before; took > 20*time.Millisecond || n != 1 {
			t.Fatalf("%v and %d questions for 100 calls", took, n)
		}
	})
}

func TestDuplicateOfARunThatFailedOpenIsToldAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newSpy(t)
		store.claims = append(store.claims, fails, fails, fails)
		op := operationOn(t, store, idem.AtLeastOnce, idem.WithFailOpen())
		leave, over := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(over)
			_ = idem.Do(t.Context(), "pay-42", func(context.Context) error { <-leave; return nil }, idem.On(op))
		}()
		time.Sleep(time.Second)
		start := time.Now()
		err := idem.Do(t.Context(), "pay-42", func(context.Context) error { return nil }, idem.On(op))
		if wantError(t, err, idem.ErrInProgress); time.Since(start) > 0 {
			t.Errorf("it took %v", time.Since(start))
		}
		close(leave)
		<-over
	})
}
