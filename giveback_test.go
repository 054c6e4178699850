package idem_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
)

func TestKeyIsGivenBackOnceTheStoreIsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newSpy(t)
		op := operationOn(t, store, idem.AtLeastOnce)
		store.set(&store.releases, fails)
		go func() {
			time.Sleep(3 * time.Second)
			store.set(&store.releases, nil)
		}()
		err := idem.Do(t.Context(), "pay-42", func(context.Context) error { return context.DeadlineExceeded }, idem.On(op))
		if rec, _, _ := op.Inspect(t.Context(), "pay-42"); !errors.Is(err, context.DeadlineExceeded) || rec.State != driver.StateReleased {
			t.Fatal(err, rec.State)
		}
	})
}

func TestKeyThatCannotBeGivenBackIsNoticed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, began := newSpy(t), time.Now()
		var told error
		op := operationOn(t, store, idem.AtLeastOnce, idem.WithLeaseTTL(10*time.Second),
			idem.WithObserver(idem.Observer{Notice: func(_ context.Context, n idem.Notice) {
				if n.Kind == idem.NoticeNotRecorded {
					told = n.Err
				}
			}}))
		store.set(&store.releases, fails)
		err := idem.Do(t.Context(), "pay-42", func(context.Context) error { return context.DeadlineExceeded }, idem.On(op))
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(told, errCut) || took < 9*time.Second || took > 11*time.Second {
			t.Fatalf("%v after %v, told: %v", err, took, told)
		}
	})
}

// unreleasing is a store in this process that gives nothing back.
type unreleasing struct{ *idemmemory.Store }

func (unreleasing) Release(context.Context, driver.ReleaseParams) (driver.ReleaseResult, error) {
	return driver.ReleaseResult{}, errCut
}

func TestCallerDoesNotWaitAsLongAsARunMayTake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		op, began := operationOn(t, unreleasing{newMemory(t)}, idem.AtLeastOnce), time.Now()
		_ = idem.Do(t.Context(), "pay-42", func(context.Context) error { return context.DeadlineExceeded }, idem.On(op))
		if took := time.Since(began); took > idem.DefaultLeaseTTL+time.Second {
			t.Error("the caller waited for", took)
		}
	})
}

func TestClaimThatMayNeverHaveBeenIsNotGivenBackForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, began := newSpy(t), time.Now()
		op := operationOn(t, store, idem.AtLeastOnce)
		store.claims = []hook{fails, fails, fails}
		store.set(&store.releases, fails)
		err := idem.Do(t.Context(), "pay-42", func(context.Context) error { return nil }, idem.On(op))
		if wantError(t, err, idem.ErrStore); time.Since(began) > time.Second {
			t.Fatal("the caller waited for", time.Since(began))
		}
	})
}
