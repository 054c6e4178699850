package idem_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
)

// uncertain returns a guard whose key pay-42 is uncertain.
func uncertain(t *testing.T) *idem.Operation {
	t.Helper()
	op := newOperation(t, idem.AtMostOnce)
	_, _ = idem.Execute(t.Context(), "pay-42", func(context.Context) (receipt, error) {
		return receipt{}, context.DeadlineExceeded
	}, idem.On(op))
	return op
}

func TestResolveSettlesAnUncertainKey(t *testing.T) {
	t.Parallel()
	found := receipt{Amount: 500, ID: "found"}

	op, pay := uncertain(t), new(charge)
	if err := op.Resolve(t.Context(), "pay-42", idem.Succeeded(found)); err != nil {
		t.Fatal(err)
	}
	if got, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op)); err != nil || got != found || pay.runs.Load() != 0 {
		t.Fatal("succeeded:", got, err)
	}

	op = uncertain(t)
	if err := op.Resolve(t.Context(), "pay-42", idem.Failed(errDeclined)); err != nil {
		t.Fatal(err)
	}
	_, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op))
	var replayed *idem.ReplayedError
	if !errors.As(err, &replayed) || replayed.Message != "declined" || pay.runs.Load() != 0 {
		t.Fatal("failed:", err)
	}

	op = uncertain(t)
	if err := op.Resolve(t.Context(), "pay-42", idem.NotRun()); err != nil {
		t.Fatal(err)
	}
	res, err := idem.ExecuteResult(t.Context(), "pay-42", pay.run, idem.On(op))
	if err != nil || pay.runs.Load() != 1 || res.Attempt != 2 {
		t.Fatalf("not run: %+v, %v", res, err)
	}

	op = newOperation(t, idem.AtMostOnce)
	end := func(context.Context) error { return context.Canceled }
	_ = idem.Do(t.Context(), "mail", end, idem.On(op))
	if err := op.Resolve(t.Context(), "mail", idem.Succeeded(nil)); err != nil {
		t.Fatal(err)
	}
	if err := idem.Do(t.Context(), "mail", end, idem.On(op)); err != nil {
		t.Fatal("Do:", err)
	}
}

func TestResolveIsRefusedForWhatIsNotUncertain(t *testing.T) {
	t.Parallel()
	op := uncertain(t)
	rec, ok, err := op.Inspect(t.Context(), "pay-42")
	if err != nil || !ok || rec.State != driver.StateUncertain || rec.Fence == 0 || rec.ClaimedAt.IsZero() || rec.Key != "pay-42" {
		t.Fatalf("%+v, %v, %v", rec, ok, err)
	}
	for says, err := range map[string]error{
		"look at it again":           op.Resolve(t.Context(), "pay-42", idem.NotRun(), idem.IfFence(rec.Fence+1)),
		"there is no record":         op.Resolve(t.Context(), "pay-43", idem.NotRun()),
		"Failed(nil)":                op.Resolve(t.Context(), "pay-42", idem.Failed(nil)),
		"the outcome is empty":       op.Resolve(t.Context(), "pay-42", idem.Outcome{}),
		"a fence is above 0":         op.Resolve(t.Context(), "pay-42", idem.NotRun(), idem.IfFence(0)),
		"cannot be stored":           op.Resolve(t.Context(), "pay-42", idem.Succeeded(make(chan int))),
		"only an uncertain one can ": second(false, resolveTwice(t, op)),
	} {
		if wantError(t, err, idem.ErrConfig); !strings.Contains(err.Error(), says) {
			t.Errorf("%v\n\tdoes not say %q", err, says)
		}
	}
	wantError(t, op.Resolve(t.Context(), "", idem.NotRun()), idem.ErrInvalidKey)
}

func resolveTwice(t *testing.T, op *idem.Operation) error {
	t.Helper()
	other := operationOn(t, op.Driver(), idem.AtMostOnce)
	_ = idem.Do(t.Context(), "twice", func(context.Context) error { return context.Canceled }, idem.On(other))
	if err := other.Resolve(t.Context(), "twice", idem.Succeeded(nil)); err != nil {
		t.Error(err)
	}
	return other.Resolve(t.Context(), "twice", idem.NotRun())
}

func TestForgetFreesAKeyButNotALiveOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, pay := newSpy(t), new(charge)
		op := operationOn(t, store, idem.AtLeastOnce)
		busy(t, store, idem.AtLeastOnce, time.Second, nil)
		wantError(t, op.Forget(t.Context(), "pay-42"), idem.ErrInProgress)
		time.Sleep(2 * time.Second)
		before, _, _ := op.Inspect(t.Context(), "pay-42")
		if err := op.Forget(t.Context(), "pay-42"); err != nil {
			t.Fatal(err)
		}
		if err := op.Forget(t.Context(), "never seen"); err != nil {
			t.Fatal(err)
		}
		res, err := idem.ExecuteResult(t.Context(), "pay-42", pay.run, idem.On(op))
		if err != nil || res.Replayed || res.Attempt != 1 || res.Fence <= before.Fence {
			t.Fatalf("%+v, %v after the fence %d", res, err, before.Fence)
		}
	})
}

func TestResolutionWinsOverAnOwnerGivenUpForLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newSpy(t)
		store.set(&store.renews, fails)
		op := operationOn(t, store, idem.AtMostOnce, idem.WithLeaseTTL(time.Second))
		found := receipt{Amount: 500}
		res, err := idem.ExecuteResult(t.Context(), "pay-42", func(context.Context) (receipt, error) {
			time.Sleep(2 * time.Second)
			return receipt{Amount: 1}, op.Resolve(context.Background(), "pay-42", idem.Succeeded(found))
		}, idem.On(op))
		if err != nil || res.Recorded {
			t.Fatalf("%+v, %v", res, err)
		}
		if got, err := idem.Execute(t.Context(), "pay-42", new(charge).run, idem.On(op)); err != nil || got != found {
			t.Fatal(got, err)
		}
	})
}
