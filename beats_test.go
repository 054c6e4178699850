package idem_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
)

// batching is a spy that renews many leases in one round trip.
type batching struct {
	*spy

	batches atomic.Int64
	most    atomic.Int64
	fail    atomic.Bool
	hang    atomic.Bool
	gone    string // the ID of a key whose claim is another's
}

func (b *batching) RenewBatch(ctx context.Context, p driver.RenewBatchParams) (driver.RenewBatchResult, error) {
	b.batches.Add(1)
	b.most.Store(max(b.most.Load(), int64(len(p.Renewals))))
	if b.hang.Load() {
		<-ctx.Done()
		return driver.RenewBatchResult{}, ctx.Err()
	}
	if b.fail.Load() {
		return driver.RenewBatchResult{}, errCut
	}
	time.Sleep(time.Millisecond)
	res := driver.RenewBatchResult{Renewals: make([]driver.RenewAnswer, len(p.Renewals))}
	for i, r := range p.Renewals {
		if err := ctx.Err(); err != nil {
			return driver.RenewBatchResult{}, err
		}
		if res.Renewals[i].Result, res.Renewals[i].Err = b.Store.Renew(ctx, r); r.Key.ID == b.gone {
			res.Renewals[i].Err = driver.ErrLost
		}
	}
	return res, nil
}

func TestRenewalsThatAreDueTogetherGoOutTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &batching{spy: newSpy(t)}
		op := operationOn(t, store, idem.AtLeastOnce, idem.WithLeaseTTL(3*time.Second))
		const calls, runs = 50, time.Minute
		var wg sync.WaitGroup
		for i := range calls {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 20 * time.Millisecond) // they do not begin at once
				res, err := idem.ExecuteResult(t.Context(), fmt.Sprint("k", i), func(ctx context.Context) (int, error) {
					time.Sleep(runs)
					return i, ctx.Err()
				}, idem.On(op))
				if err != nil || !res.Recorded {
					t.Errorf("%+v, %v", res, err)
				}
			})
		}
		wg.Wait()
		single := int64(calls * runs / time.Second) // one a second each
		if n := store.batches.Load() + store.renewed.Load(); n > single/8 || store.most.Load() < 10 {
			t.Errorf("%d round trips in place of %d, %d leases at most in one", n, single, store.most.Load())
		}
	})
}

func TestRunThatReturnsTakesNoOtherLeaseWithIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &batching{spy: newSpy(t)}
		op := operationOn(t, store, idem.AtLeastOnce, idem.WithLeaseTTL(300*time.Millisecond))
		var wg sync.WaitGroup
		wg.Go(func() { // the others come and go around it, in the middle of batches too
			res, err := idem.ExecuteResult(t.Context(), "long", func(ctx context.Context) (int, error) {
				time.Sleep(10 * time.Second)
				return 1, ctx.Err()
			}, idem.On(op))
			if err != nil || !res.Recorded {
				t.Errorf("%+v, %v", res, err)
			}
		})
		for i := range 20 {
			wg.Go(func() {
				for j := range 50 {
					d := time.Duration(95+i) * time.Millisecond
					err := idem.Do(t.Context(), fmt.Sprint(i, ".", j), func(context.Context) error { time.Sleep(d); return nil }, idem.On(op))
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestEachRunOfAFailedBatchIsCancelledInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &batching{spy: newSpy(t)}
		store.fail.Store(true)
		store.set(&store.renews, fails)
		op := operationOn(t, store, idem.AtLeastOnce, idem.WithLeaseTTL(time.Second))
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				start := time.Now()
				_ = idem.Do(t.Context(), fmt.Sprint("k", i), func(ctx context.Context) error {
					<-ctx.Done()
					if took := time.Since(start); !errors.Is(context.Cause(ctx), idem.ErrLeaseLost) || took > time.Second || took < 800*time.Millisecond {
						t.Errorf("cancelled after %v by %v", took, context.Cause(ctx))
					}
					return ctx.Err()
				}, idem.On(op))
			})
		}
		wg.Wait()
	})
}

func TestRunIsCancelledInTimeThoughItsRenewalHangsInTheBatchOfALongerLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &batching{spy: newSpy(t)}
		store.hang.Store(true)
		op := operationOn(t, store, idem.AtLeastOnce, idem.WithLeaseTTL(time.Minute))
		long := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			_ = idem.Do(t.Context(), "long", func(context.Context) error { <-long; return nil }, idem.On(op))
		})
		time.Sleep(19750 * time.Millisecond) // both renewals are due just after 20 s
		start := time.Now()
		_ = idem.Do(t.Context(), "short", func(ctx context.Context) error {
			<-ctx.Done()
			if took := time.Since(start); !errors.Is(context.Cause(ctx), idem.ErrLeaseLost) || took >= time.Second {
				t.Errorf("cancelled after %v by %v", took, context.Cause(ctx))
			}
			return ctx.Err()
		}, idem.On(op), idem.WithLeaseTTL(time.Second))
		if store.batches.Load() == 0 {
			t.Error("the renewals did not go out together")
		}
		close(long)
		wg.Wait()
	})
}

func TestLostLeaseOfABatchIsLostAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &batching{spy: newSpy(t), gone: "k3"}
		store.set(&store.renews, fails) // if one is due alone, it is tried again in a batch
		var lost atomic.Int64
		op := operationOn(t, store, idem.AtLeastOnce, idem.WithLeaseTTL(time.Second),
			idem.WithObserver(idem.Observer{Notice: func(_ context.Context, n idem.Notice) {
				if n.Kind == idem.NoticeLeaseLost {
					lost.Add(1)
				}
			}}))
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				err := idem.Do(t.Context(), fmt.Sprint("k", i), func(ctx context.Context) error {
					select {
					case <-ctx.Done():
						return context.Cause(ctx)
					case <-time.After(5 * time.Second):
						return nil
					}
				}, idem.On(op))
				if (i == 3) != errors.Is(err, idem.ErrLeaseLost) {
					t.Errorf("%d: %v", i, err)
				}
			})
		}
		wg.Wait()
		if lost.Load() != 1 {
			t.Error(lost.Load(), "notices")
		}
	})
}
