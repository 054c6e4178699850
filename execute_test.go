package idem_test

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
)

func TestDuplicateReplaysTheFirstAnswer(t *testing.T) {
	t.Parallel()
	for _, g := range []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce} {
		op, pay := newOperation(t, g), new(charge)
		first, err := idem.ExecuteResult(t.Context(), "pay-42", pay.run, idem.On(op))
		if err != nil || first.Replayed || !first.Recorded || first.Attempt != 1 || first.Fence == 0 {
			t.Fatalf("%v: first call: %+v, %v", g, first, err)
		}
		again, err := idem.ExecuteResult(t.Context(), "pay-42", pay.run, idem.On(op))
		if err != nil || !again.Replayed || again.Value != first.Value || again.Fence != first.Fence ||
			!again.CompletedAt.Equal(first.CompletedAt) {
			t.Fatalf("%v: duplicate: %+v, %v; want the answer of %+v", g, again, err, first)
		}
		if n := pay.runs.Load(); n != 1 {
			t.Fatalf("%v: the function ran %d times", g, n)
		}
	}
}

func TestDomainFailureIsReplayed(t *testing.T) {
	t.Parallel()
	op, pay := newOperation(t, idem.AtLeastOnce), &charge{err: errDeclined}
	got, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op))
	if err != errDeclined || got.Amount != 1 { //nolint:errorlint // unchanged
		t.Fatalf("first call: %v, %v; want the function's own value and error", got, err)
	}
	_, err = idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op))
	var replayed *idem.ReplayedError
	if !errors.As(err, &replayed) || replayed.Message != "declined" || replayed.At.IsZero() {
		t.Fatalf("duplicate: %v; want the stored failure", err)
	}
	if pay.runs.Load() != 1 {
		t.Fatal("a stored failure ran again")
	}
}

func TestZeroValuesAreOutcomes(t *testing.T) { // CASES C6
	t.Parallel()
	op := newOperation(t, idem.AtLeastOnce)
	replays(t, op, "int", 0)
	replays(t, op, "string", "")
	replays(t, op, "bool", false)
	replays(t, op, "struct", struct{}{})
	replays(t, op, "pointer", (*receipt)(nil))
	replays(t, op, "nil slice", []int(nil))
	replays(t, op, "empty slice", []int{})
	replays(t, op, "nil bytes", []byte(nil))
	replays(t, op, "empty bytes", []byte{})
	replays(t, op, "nil map", map[string]int(nil))
	replays(t, op, "empty map", map[string]int{})
	if err := idem.Do(t.Context(), "do", func(context.Context) error { return nil }, idem.On(op)); err != nil {
		t.Fatal(err)
	}
	if err := idem.Do(t.Context(), "do", func(context.Context) error { return errDeclined }, idem.On(op)); err != nil {
		t.Fatal("Do ran again:", err)
	}
}

func replays[T any](t *testing.T, op *idem.Operation, key string, want T) {
	t.Helper()
	for _, label := range []string{"first", "replay"} {
		got, err := idem.Execute(t.Context(), key, func(context.Context) (T, error) { return want, nil }, idem.On(op))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s, %s: got %#v, %v; want %#v", key, label, got, err, want)
		}
	}
}

func TestPanicAndGoexitSettleTheKeyAndGoOn(t *testing.T) {
	t.Parallel()
	ends := map[string]func(){"panic": func() { panic("bug") }, "goexit": runtime.Goexit}
	for name, end := range ends {
		for g, want := range map[idem.Guarantee]driver.State{
			idem.AtLeastOnce: driver.StateReleased, idem.AtMostOnce: driver.StateUncertain,
		} {
			store := newSpy(t)
			op := operationOn(t, store, g)
			returned, recovered := false, any(nil)
			var wg sync.WaitGroup
			wg.Go(func() {
				defer func() { recovered = recover() }()
				_ = idem.Do(t.Context(), "pay-42", func(context.Context) error { end(); return nil }, idem.On(op))
				returned = true
			})
			wg.Wait()
			if returned || (name == "panic") != (recovered == "bug") {
				t.Fatalf("%s, %v: it did not go on: returned %v, recovered %v", name, g, returned, recovered)
			}
			if n := store.completed.Load() + store.released.Load(); n != 1 {
				t.Fatalf("%s, %v: %d terminal transitions", name, g, n)
			}
			rec, _, err := op.Inspect(t.Context(), "pay-42")
			if err != nil || rec.State != want {
				t.Fatalf("%s, %v: the record is %v, %v; want %v", name, g, rec.State, err, want)
			}
		}
	}
}

func TestCancellationReachesTheFunctionButNotTheRecording(t *testing.T) { // CASES C7
	t.Parallel()
	for _, g := range []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce} {
		op, pay := operationOn(t, newSpy(t), g), new(charge)
		ctx, cancel := context.WithCancel(t.Context())
		res, err := idem.ExecuteResult(ctx, "pay-42", func(ctx context.Context) (receipt, error) {
			cancel()
			if <-ctx.Done(); !errors.Is(context.Cause(ctx), context.Canceled) {
				t.Error("the function's context ended with", context.Cause(ctx))
			}
			return pay.run(ctx)
		}, idem.On(op))
		if err != nil || !res.Recorded {
			t.Fatalf("%v: %+v, %v", g, res, err)
		}
		if again, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op)); err != nil || again != res.Value {
			t.Fatalf("%v: duplicate: %v, %v", g, again, err)
		}
	}
}

func TestClaimIsGivenBackWhenTheFunctionWasNeverEntered(t *testing.T) { // CASES C7, N1
	t.Parallel()
	for _, g := range []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce} {
		store, pay := newSpy(t), new(charge)
		op := operationOn(t, store, g)
		ctx, cancel := context.WithCancel(t.Context())
		store.claims = append(store.claims, func(_ context.Context, do func() error) error {
			cancel()
			return do()
		})
		_, err := idem.Execute(ctx, "pay-42", pay.run, idem.On(op))
		if e := idemError(t, err, idem.ErrStore); !errors.Is(e, context.Canceled) || pay.runs.Load() != 0 {
			t.Fatalf("%v: %v, %d runs", g, err, pay.runs.Load())
		}
		if _, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op)); err != nil {
			t.Fatalf("%v: the key is stuck: %v", g, err)
		}
	}
}

func TestLostReplyOfAClaimIsSettledByItsToken(t *testing.T) { // CASES L11, S11
	t.Parallel()
	for _, g := range []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce} {
		store, pay := newSpy(t), new(charge)
		op := operationOn(t, store, g)
		store.claims = append(store.claims, loses)
		res, err := idem.ExecuteResult(t.Context(), "pay-42", pay.run, idem.On(op))
		if err != nil || res.Attempt != 1 || pay.runs.Load() != 1 {
			t.Fatalf("%v: %+v, %v, %d runs", g, res, err, pay.runs.Load())
		}
	}
}

func TestClaimWithoutAnAnswerIsGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, g := range []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce} {
			for last, hooks := range map[error][]hook{errCut: {loses, loses, loses}, driver.ErrBusy: {loses, busyNow}} {
				store, pay := newSpy(t), new(charge)
				op := operationOn(t, store, g)
				store.claims = hooks
				_, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op))
				if wantError(t, err, idem.ErrStore); !errors.Is(err, last) || pay.runs.Load() != 0 {
					t.Fatalf("%v: %v, %d runs", g, err, pay.runs.Load())
				}
				if _, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op)); err != nil {
					t.Fatalf("%v, %v: the key is stuck: %v", g, last, err)
				}
			}
		}
	})
}

func TestClaimIsGivenBackWhenTheObserverPanicsBeforeTheFunction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, pay := newSpy(t), new(charge)
		op := operationOn(t, store, idem.AtLeastOnce, idem.WithObserver(idem.Observer{Notice: func(_ context.Context, n idem.Notice) {
			if n.Kind == idem.NoticeTakeover {
				panic("observer")
			}
		}}))
		dead := driver.ClaimParams{
			Key: driver.Key{Scope: "payments", ID: "pay-42"}, Token: driver.Token{1}, Lease: time.Second,
			OnLapse: driver.TakeOver, Guarantee: driver.AtLeastOnce, Format: 1,
		}
		if _, err := store.Claim(t.Context(), dead); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		func() {
			defer func() { _ = recover() }()
			_, _ = idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op))
		}()
		if rec, _, err := op.Inspect(t.Context(), "pay-42"); err != nil || rec.State != driver.StateReleased || pay.runs.Load() != 0 {
			t.Fatal(rec.State, err, pay.runs.Load())
		}
	})
}

// busyNow answers that for sure nothing happened, this time.
func busyNow(context.Context, func() error) error { return driver.ErrBusy }

func TestOwnKeyInsideItsRunIsRefusedAtOnce(t *testing.T) { // CASES N3
	t.Parallel()
	op := newOperation(t, idem.AtLeastOnce, idem.WithWait(time.Hour))
	err := idem.Do(t.Context(), "pay-42", func(ctx context.Context) error {
		return idem.Do(ctx, "pay-42", func(context.Context) error { return nil }, idem.On(op))
	}, idem.On(op))
	wantError(t, err, idem.ErrConfig)

	// Another key is fine, and so is the same one once the run is over.
	var leaked context.Context
	err = idem.Do(t.Context(), "pay-43", func(ctx context.Context) error {
		leaked = ctx //nolint:fatcontext // the leak is the case
		return idem.Do(ctx, "pay-44", func(context.Context) error { return nil }, idem.On(op))
	}, idem.On(op))
	if err != nil {
		t.Fatal(err)
	}
	if err := idem.Do(context.WithoutCancel(leaked), "pay-43", func(context.Context) error { return nil }, idem.On(op)); err != nil {
		t.Fatal(err)
	}
}

func TestThousandCallsLeaveNoGoroutine(t *testing.T) { // CASES L7; goleak watches in TestMain too
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // which fails if a goroutine of the bubble is left
		op := operationOn(t, newSpy(t), idem.AtLeastOnce, idem.WithLeaseTTL(30*time.Millisecond))
		for i := range 1000 {
			key := string(rune('a' + i%26))
			func() {
				defer func() { _ = recover() }()
				_ = idem.Do(t.Context(), key, func(context.Context) error {
					time.Sleep(time.Duration(i%50) * time.Millisecond)
					switch i % 4 {
					case 0:
						return context.DeadlineExceeded
					case 1:
						panic("bug")
					}
					return nil
				}, idem.On(op), idem.WithRetention(time.Millisecond))
			}()
		}
	})
}

func TestObserverSeesEachCallOnce(t *testing.T) {
	t.Parallel()
	type key struct{}
	var begun, ended int
	var last idem.Info
	op := newOperation(t, idem.AtLeastOnce, idem.WithObserver(idem.Observer{
		Begin: func(ctx context.Context, _ idem.Info) context.Context {
			begun++
			return context.WithValue(ctx, key{}, "span")
		},
		End: func(_ context.Context, info idem.Info, _ error, _ time.Duration) { ended++; last = info },
	}))
	for range 2 {
		_ = idem.Do(t.Context(), "pay-42", func(ctx context.Context) error {
			if ctx.Value(key{}) != "span" {
				t.Error("the observer's context did not reach the function")
			}
			return nil
		}, idem.On(op))
	}
	if begun != 2 || ended != 2 || !last.Replayed {
		t.Fatalf("begun %d, ended %d, last %+v", begun, ended, last)
	}
}
