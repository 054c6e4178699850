package idem_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
)

func TestCachedOutcomeIsReplayedWithoutTheStore(t *testing.T) {
	t.Parallel()
	store, pay := newSpy(t), new(charge)
	op := operationOn(t, store, idem.AtLeastOnce, idem.WithLocalCache(10))
	for i := range 5 {
		res, err := idem.ExecuteResult(t.Context(), "pay-42", pay.run, idem.On(op))
		if err != nil || res.Value.Amount != 1 || res.Replayed != (i > 0) || !res.Recorded || res.CompletedAt.IsZero() {
			t.Fatalf("%+v, %v", res, err)
		}
		if got, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op)); err != nil || got != res.Value {
			t.Fatal(got, err)
		}
	}
	declined := &charge{err: errDeclined}
	for range 3 {
		_, err := idem.Execute(t.Context(), "pay-43", declined.run, idem.On(op))
		if err == nil || err.Error() != "declined" {
			t.Fatal(err)
		}
	}
	if store.claimed.Load() != 2 || pay.runs.Load() != 1 || declined.runs.Load() != 1 {
		t.Fatalf("%d claims, %d and %d runs", store.claimed.Load(), pay.runs.Load(), declined.runs.Load())
	}
}

func TestReplayFromTheStoreIsCachedToo(t *testing.T) {
	t.Parallel()
	store, pay := newSpy(t), new(charge)
	_, _ = idem.Execute(t.Context(), "pay-42", pay.run, idem.On(operationOn(t, store, idem.AtLeastOnce)))
	op := operationOn(t, store, idem.AtLeastOnce, idem.WithLocalCache(10))
	for range 5 {
		if got, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op)); err != nil || got.Amount != 1 {
			t.Fatal(got, err)
		}
	}
	if n := store.claimed.Load(); n != 2 {
		t.Fatal(n, "claims")
	}
}

func TestCachedOutcomeLivesNoLongerThanTheRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, pay := newSpy(t), new(charge)
		op := operationOn(t, store, idem.AtLeastOnce, idem.WithLocalCache(10), idem.WithRetention(10*time.Second), idem.WithTombstone(time.Hour))
		call := func(key string) error {
			_, err := idem.Execute(t.Context(), key, func(ctx context.Context) (receipt, error) {
				time.Sleep(5 * time.Second) // the retention counts from the end
				return pay.run(ctx)
			}, idem.On(op))
			return err
		}
		if err := call("pay-42"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10*time.Second - time.Millisecond)
		if err := call("pay-42"); err != nil || store.claimed.Load() != 1 {
			t.Fatal(err, store.claimed.Load(), "claims")
		}
		time.Sleep(time.Millisecond)
		wantError(t, call("pay-42"), idem.ErrKeyExpired)
	})
}

func TestMismatchIsRefusedFromTheCache(t *testing.T) { // CASES K4
	t.Parallel()
	store, pay := newSpy(t), new(charge)
	op := operationOn(t, store, idem.AtLeastOnce, idem.WithLocalCache(10))
	call := func(opts ...idem.ExecuteOption) error {
		_, err := idem.Execute(t.Context(), "pay-42", pay.run, append(opts, idem.On(op))...)
		return err
	}
	for range 2 {
		if err := call(idem.WithFingerprint(500)); err != nil {
			t.Fatal(err)
		}
		wantError(t, call(idem.WithFingerprint(900)), idem.ErrMismatch)
	}
	if err := call(); err != nil || store.claimed.Load() != 1 || pay.runs.Load() != 1 {
		t.Fatal(err, store.claimed.Load(), pay.runs.Load())
	}
}

func TestForgottenOutcomeLeavesTheCache(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, pay := newSpy(t), new(charge)
		op := operationOn(t, store, idem.AtLeastOnce, idem.WithLocalCache(10))
		call := func() int {
			got, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op))
			if err != nil {
				t.Error(err)
			}
			return got.Amount
		}
		call()
		if err := op.Forget(t.Context(), "pay-42"); err != nil || call() != 2 {
			t.Fatal("here:", err)
		}
		elsewhere := operationOn(t, store, idem.AtLeastOnce)
		if err := elsewhere.Forget(t.Context(), "pay-42"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(idem.LocalCacheAge)
		if n := call(); n != 3 {
			t.Fatal("in another process: still", n)
		}
	})
}

func TestNothingUnfinishedIsCached(t *testing.T) {
	t.Parallel()
	store := newSpy(t)
	op := operationOn(t, store, idem.AtLeastOnce, idem.WithLocalCache(10))
	runs := 0
	for range 3 {
		_ = idem.Do(t.Context(), "released", func(context.Context) error { runs++; return context.Canceled }, idem.On(op))
	}
	if runs != 3 {
		t.Error(runs, "runs of a key that is released each time")
	}
	large := strings.Repeat("x", 20<<10)
	before := store.claimed.Load()
	for range 3 {
		_, _ = idem.Execute(t.Context(), "large", func(context.Context) (string, error) { return large, nil }, idem.On(op))
	}
	if n := store.claimed.Load() - before; n != 3 {
		t.Error("an outcome too large for the memory took", n, "claims")
	}
}

func TestCachedValuesShareNoMemory(t *testing.T) {
	t.Parallel()
	op := newOperation(t, idem.AtLeastOnce, idem.WithLocalCache(10))
	call := func() []string {
		got, err := idem.Execute(t.Context(), "k", func(context.Context) ([]string, error) { return []string{"a"}, nil }, idem.On(op))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for range 4 {
		if got := call(); got[0] != "a" {
			t.Fatal(got)
		}
		call()[0] = "changed"
	}
	_, err := idem.Execute(t.Context(), "k", func(context.Context) (int, error) { return 0, nil }, idem.On(op))
	wantError(t, err, idem.ErrUnreadable) // another type is not what is stored, in memory either
}

func TestInboxOutcomeIsCachedOnceItHasCommitted(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	op := operationOn(t, l, idem.ExactlyOnce, idem.WithLocalCache(10))
	for range 5 {
		if got, err := idem.Execute(t.Context(), "pay-42", book, idem.On(op)); err != nil || got.Amount != 500 {
			t.Fatal(got, err)
		}
	}
	if l.calls != 1 || l.effects(t, "pay-42") != 1 {
		t.Fatalf("%d transactions, %d effects", l.calls, l.effects(t, "pay-42"))
	}
}

func TestForgottenKeyIsNotAnsweredFromMemory(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]func(here, there *idem.Operation) error{
		"while a call reads it": func(here, _ *idem.Operation) error { return here.Forget(context.Background(), "pay-42") },
		"elsewhere and then here": func(here, there *idem.Operation) error {
			return errors.Join(there.Forget(context.Background(), "pay-42"), here.Forget(context.Background(), "pay-42"))
		},
	} {
		store, pay := newSpy(t), new(charge)
		here := operationOn(t, store, idem.AtLeastOnce, idem.WithLocalCache(10))
		there := operationOn(t, store, idem.AtLeastOnce)
		_, _ = idem.Execute(t.Context(), "pay-42", pay.run, idem.On(there))
		store.claims = append(store.claims, func(_ context.Context, do func() error) error {
			return errors.Join(do(), forget(here, there))
		})
		for range 2 {
			if _, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(here)); err != nil {
				t.Fatal(name, err)
			}
		}
		if pay.runs.Load() != 2 {
			t.Errorf("forgotten %s: %d runs", name, pay.runs.Load())
		}
	}
}
