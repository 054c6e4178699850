package idem_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
)

func TestHeartbeatKeepsTheLeaseWhileTheFunctionRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newSpy(t)
		op := operationOn(t, store, idem.AtLeastOnce, idem.WithLeaseTTL(300*time.Millisecond))
		res, err := idem.ExecuteResult(t.Context(), "pay-42", func(ctx context.Context) (int, error) {
			time.Sleep(10 * time.Second)
			return 1, ctx.Err()
		}, idem.On(op))
		if err != nil || !res.Recorded {
			t.Fatalf("%+v, %v", res, err)
		}
		if n := store.renewed.Load(); n < 99 || n > 101 { // one each 100 ms
			t.Fatalf("%d renewals in 10 s with a lease of 300 ms", n)
		}
	})
}

func TestFunctionIsCancelledBeforeAnUnrenewedLeaseEnds(t *testing.T) { // CASES L10
	t.Parallel()
	hang := func(ctx context.Context, _ func() error) error { <-ctx.Done(); return ctx.Err() }
	for name, renews := range map[string]func(context.Context, func() error) error{"fails": fails, "hangs": hang} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := newSpy(t)
				store.set(&store.renews, renews)
				op := operationOn(t, store, idem.AtLeastOnce, idem.WithLeaseTTL(time.Second))
				start := time.Now()
				err := idem.Do(t.Context(), "pay-42", func(ctx context.Context) error {
					<-ctx.Done()
					if took := time.Since(start); took > time.Second || took < 800*time.Millisecond {
						t.Errorf("cancelled after %v of a lease of 1 s", took)
					}
					if !errors.Is(context.Cause(ctx), idem.ErrLeaseLost) || !errors.Is(ctx.Err(), context.Canceled) {
						t.Errorf("cause %v, error %v", context.Cause(ctx), ctx.Err())
					}
					return ctx.Err()
				}, idem.On(op))
				if !errors.Is(err, context.Canceled) {
					t.Fatal("the function's own error was changed:", err)
				}
			})
		})
	}
}

func TestNoticeOfALostLeaseEndsBeforeTheCall(t *testing.T) {
	t.Parallel()
	lost := func(context.Context, func() error) error { return driver.ErrLost }
	for name, row := range map[string]struct {
		renews hook
		notice func()
	}{
		"cut":                       {fails, func() {}},
		"lost":                      {lost, func() {}},
		"cut, ends the goroutine":   {fails, runtime.Goexit},
		"lost, ends the goroutine":  {lost, runtime.Goexit},
		"hangs till the call's end": {func(ctx context.Context, _ func() error) error { <-ctx.Done(); return ctx.Err() }, func() {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := newSpy(t)
				store.set(&store.renews, row.renews)
				told := 0 // the race detector sees it if the call does not wait
				op := operationOn(t, store, idem.AtLeastOnce, idem.WithLeaseTTL(time.Second),
					idem.WithObserver(idem.Observer{Notice: func(_ context.Context, n idem.Notice) {
						if n.Kind == idem.NoticeLeaseLost {
							time.Sleep(time.Second)
							told++
							row.notice()
						}
					}}))
				_ = idem.Do(t.Context(), "pay-42", func(ctx context.Context) error { <-ctx.Done(); return nil }, idem.On(op))
				if told != 1 {
					t.Errorf("%d notices when the call returned", told)
				}
			})
		})
	}
}

func TestGuardIsCancelledOnlyWhenItsClaimIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newSpy(t)
		store.set(&store.renews, fails)
		op := operationOn(t, store, idem.AtMostOnce, idem.WithLeaseTTL(time.Second))
		res, err := idem.ExecuteResult(t.Context(), "pay-42", func(ctx context.Context) (int, error) {
			time.Sleep(time.Minute)
			return 1, ctx.Err()
		}, idem.On(op))
		if err != nil || !res.Recorded {
			t.Fatalf("a failed renewal ended a guard: %+v, %v", res, err)
		}

		store.set(&store.renews, func(context.Context, func() error) error { return driver.ErrLost })
		err = idem.Do(t.Context(), "pay-43", func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}, idem.On(op))
		if !errors.Is(err, idem.ErrLeaseLost) {
			t.Fatal(err)
		}
	})
}

func TestRenewalEndsAtMaxLease(t *testing.T) { // CASES L8
	t.Parallel()
	for name, store := range map[string]func(*testing.T) driver.Driver{
		"leased":    func(t *testing.T) driver.Driver { t.Helper(); return newSpy(t) },
		"ephemeral": func(t *testing.T) driver.Driver { t.Helper(); return newMemory(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := store(t)
				op := operationOn(t, d, idem.AtLeastOnce, idem.WithLeaseTTL(time.Second), idem.WithMaxLease(10*time.Second))
				other := operationOn(t, d, idem.AtLeastOnce) // another process, so to say
				stuck, cancelled := make(chan struct{}), make(chan time.Duration, 1)
				start := time.Now()
				go func() {
					_ = idem.Do(context.Background(), "pay-42", func(ctx context.Context) error {
						<-ctx.Done()
						cancelled <- time.Since(start)
						<-stuck // it ignores its context
						return nil
					}, idem.On(op))
				}()
				time.Sleep(9 * time.Second)
				_, err := idem.Execute(t.Context(), "pay-42", new(charge).run, idem.On(other))
				wantError(t, err, idem.ErrInProgress)
				time.Sleep(1001 * time.Millisecond)
				if _, err := idem.Execute(t.Context(), "pay-42", new(charge).run, idem.On(other)); err != nil {
					t.Fatal("the key of a stuck function is not free after WithMaxLease:", err)
				}
				close(stuck)
				if after := <-cancelled; after < 8*time.Second || after > 10*time.Second {
					t.Fatal("the function was cancelled after", after)
				}
			})
		})
	}
}

func TestGuardIsNotRenewedBeyondMaxLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newSpy(t)
		store.set(&store.renews, fails) // else the last renewal ends it
		op := operationOn(t, store, idem.AtMostOnce, idem.WithLeaseTTL(time.Second), idem.WithMaxLease(10*time.Second))
		err := idem.Do(t.Context(), "pay-42", func(context.Context) error {
			time.Sleep(12 * time.Second)
			before := store.renewed.Load()
			time.Sleep(time.Hour)
			if n := store.renewed.Load() - before; n > 0 {
				t.Errorf("%d renewals after WithMaxLease", n)
			}
			return nil
		}, idem.On(op))
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestSlowClaimIsRenewedBeforeTheFunctionOrDoesNotRun(t *testing.T) { // CASES N7
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := func(_ context.Context, do func() error) error {
			err := do()
			time.Sleep(700 * time.Millisecond)
			return err
		}
		store, pay := newSpy(t), new(charge)
		store.claims = append(store.claims, slow, slow)
		op := operationOn(t, store, idem.AtLeastOnce, idem.WithLeaseTTL(time.Second))
		if _, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op)); err != nil || store.renewed.Load() != 1 {
			t.Fatalf("%v, %d renewals before the function", err, store.renewed.Load())
		}
		store.set(&store.renews, fails)
		_, err := idem.Execute(t.Context(), "pay-43", pay.run, idem.On(op))
		if wantError(t, err, idem.ErrStore); pay.runs.Load() != 1 {
			t.Fatal("it ran under a lease that it could not renew")
		}
		if rec, _, _ := op.Inspect(t.Context(), "pay-43"); rec.State != driver.StateReleased {
			t.Fatalf("the claim was not given back: %v", rec.State)
		}
	})
}

func TestExtendProlongsTheLeaseUpToMaxLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newSpy(t)
		op := operationOn(t, store, idem.AtLeastOnce, idem.WithLeaseTTL(time.Second), idem.WithMaxLease(time.Minute))
		err := idem.Do(t.Context(), "pay-42", func(ctx context.Context) error {
			a, _ := idem.FromContext(ctx)
			if err := a.Extend(ctx, 30*time.Second); err != nil {
				t.Error(err)
			}
			store.set(&store.renews, fails) // from now on only what was extended holds
			wantError(t, a.Extend(ctx, 2*time.Minute), idem.ErrConfig)
			wantError(t, a.Extend(ctx, 30), idem.ErrConfig) // 30 ns
			time.Sleep(29 * time.Second)
			return ctx.Err()
		}, idem.On(op))
		if err != nil {
			t.Fatal("the function was cancelled inside the extended lease:", err)
		}
	})
}

func TestExtendThatFindsTheLeaseLostCancelsTheFunction(t *testing.T) {
	t.Parallel()
	lost := func(context.Context, func() error) error { return driver.ErrLost }
	late := func(_ context.Context, do func() error) error { time.Sleep(2 * time.Second); return do() }
	for name, row := range map[string]struct {
		g      idem.Guarantee
		renews hook
	}{
		"lease": {idem.AtLeastOnce, lost}, "guard": {idem.AtMostOnce, lost}, "answered after the lease": {idem.AtLeastOnce, late},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := newSpy(t)
				op := operationOn(t, store, row.g, idem.WithLeaseTTL(time.Second))
				_ = idem.Do(t.Context(), "pay-42", func(ctx context.Context) error {
					a, _ := idem.FromContext(ctx)
					store.set(&store.renews, row.renews)
					wantError(t, a.Extend(context.Background(), time.Minute), idem.ErrLeaseLost)
					if !errors.Is(context.Cause(ctx), idem.ErrLeaseLost) {
						t.Error("the function goes on:", context.Cause(ctx))
					}
					return nil
				}, idem.On(op))
			})
		})
	}
}

func TestExtendWithoutALeaseIsUnsupported(t *testing.T) {
	t.Parallel()
	op := newOperation(t, idem.AtMostOnce, idem.WithoutOutcomes())
	err := idem.Do(t.Context(), "pay-42", func(ctx context.Context) error {
		a, _ := idem.FromContext(ctx)
		return a.Extend(ctx, time.Second)
	}, idem.On(op))
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Fatal(err)
	}
}
