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

// asks returns an option that counts how often it is asked.
func asks(n *atomic.Int64, o idem.Outcome, err error) idem.Option {
	return idem.WithReconcile(func(ctx context.Context, key string) (idem.Outcome, error) {
		n.Add(1)
		if a, ok := idem.FromContext(ctx); key != "pay-42" || !ok || a.Key() != key {
			return idem.Outcome{}, errors.New("the context or the key is another's")
		}
		return o, err
	})
}

func TestReconcilingSettlesAnUncertainKey(t *testing.T) {
	t.Parallel()
	found := receipt{Amount: 500, ID: "found"}
	for name, row := range map[string]struct {
		o     idem.Outcome
		value receipt
		text  string
		runs  int64
		asked int64
	}{
		"succeeded": {idem.Succeeded(found), found, "", 0, 1},
		"failed":    {idem.Failed(errDeclined), receipt{}, "declined", 0, 1},
		"not run":   {idem.NotRun(), receipt{Amount: 1, ID: "ch"}, "", 1, 1},
	} {
		op, pay := uncertain(t), new(charge)
		var asked atomic.Int64
		for i := range 2 {
			res, err := idem.ExecuteResult(t.Context(), "pay-42", pay.run, idem.On(op), asks(&asked, row.o, nil))
			if text(err) != row.text || res.Value != row.value || !res.Recorded || res.Replayed != (i == 1 || row.runs == 0) {
				t.Errorf("%s, call %d: %+v, %v", name, i, res, err)
			}
		}
		if pay.runs.Load() != row.runs || asked.Load() != row.asked {
			t.Errorf("%s: %d runs, asked %d times", name, pay.runs.Load(), asked.Load())
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestKeyStaysUncertainWhenNobodyCanSay(t *testing.T) {
	t.Parallel()
	cause := errors.New("the provider is down")
	for name, opt := range map[string]idem.Option{
		"an error":      asks(new(atomic.Int64), idem.Outcome{}, cause),
		"no error":      asks(new(atomic.Int64), idem.Failed(nil), nil),
		"no outcome":    asks(new(atomic.Int64), idem.Outcome{}, nil),
		"another type":  asks(new(atomic.Int64), idem.Succeeded("text"), nil),
		"not storeable": asks(new(atomic.Int64), idem.Succeeded(make(chan int)), nil),
		"a panic":       idem.WithReconcile(func(context.Context, string) (idem.Outcome, error) { panic("bug") }),
	} {
		op, pay := uncertain(t), new(charge)
		func() {
			defer func() { _ = recover() }()
			_, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op), opt)
			wantError(t, err, idem.ErrOutcomeUnknown)
			if name == "an error" && !errors.Is(err, cause) {
				t.Error(err)
			}
		}()
		if rec, _, err := op.Inspect(t.Context(), "pay-42"); err != nil || rec.State != driver.StateUncertain || pay.runs.Load() != 0 {
			t.Errorf("%s: the record is %v, %v, %d runs", name, rec.State, err, pay.runs.Load())
		}
	}
}

func TestOneOfSeveralReconcilersAsks(t *testing.T) { // CASES N9
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, pay := newSpy(t), new(charge)
		var asked atomic.Int64
		slow := idem.WithReconcile(func(context.Context, string) (idem.Outcome, error) {
			asked.Add(1)
			time.Sleep(time.Minute) // longer than its lease
			return idem.Succeeded(receipt{Amount: 7}), nil
		})
		guard := func() *idem.Operation { return operationOn(t, store, idem.AtMostOnce, slow) } // of a process each
		_, _ = idem.Execute(t.Context(), "pay-42", func(context.Context) (receipt, error) {
			return receipt{}, context.DeadlineExceeded
		}, idem.On(guard()))
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				wait := time.Duration(i%2) * time.Hour
				got, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(guard()), idem.WithWait(wait))
				if err == nil && got.Amount == 7 {
					return
				}
				if e := idemError(t, err, idem.ErrOutcomeUnknown); e.Final || wait > 0 {
					t.Error(e)
				}
			})
		}
		wg.Wait()
		if asked.Load() != 1 || pay.runs.Load() != 0 {
			t.Fatalf("asked %d times, %d runs", asked.Load(), pay.runs.Load())
		}
	})
}

func TestDeadReconcilerLeavesTheKeyUncertain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, pay := newSpy(t), new(charge)
		var asked atomic.Int64
		op := operationOn(t, store, idem.AtMostOnce, idem.WithLeaseTTL(time.Second), asks(&asked, idem.NotRun(), nil))
		_, _ = idem.Execute(t.Context(), "pay-42", func(context.Context) (receipt, error) {
			return receipt{}, context.DeadlineExceeded
		}, idem.On(op))
		rec, _, _ := op.Inspect(t.Context(), "pay-42")
		// It dies while it asks: nothing of it reaches the store after the claim.
		claim := driver.ClaimParams{
			Key: driver.Key{Scope: "payments", ID: "pay-42"}, Token: driver.Token{1}, Lease: time.Second, Over: rec.Fence,
			OnLapse: driver.Uncertain, Guarantee: driver.AtMostOnce, Retention: driver.RetainForever, Format: 1,
		}
		if res, err := store.Claim(t.Context(), claim); err != nil || res.Decision != driver.DecisionClaimed {
			t.Fatal(res.Decision, err)
		}
		_, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op))
		if e := idemError(t, err, idem.ErrOutcomeUnknown); e.Final || asked.Load() != 0 {
			t.Fatal(e, asked.Load())
		}
		time.Sleep(time.Second + time.Millisecond)
		if _, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op)); err != nil || asked.Load() != 1 || pay.runs.Load() != 1 {
			t.Fatal(err, asked.Load(), pay.runs.Load())
		}
	})
}

func TestReconcilingWhereNothingCanBeUncertainIsRefused(t *testing.T) {
	t.Parallel()
	opt := asks(new(atomic.Int64), idem.NotRun(), nil)
	_, err := idem.NewOperation("p", newMemory(t), idem.AtMostOnce, idem.WithoutOutcomes(), opt)
	wantError(t, err, idem.ErrConfig)
	_, err = idem.NewOperation("p", newLedger(t), idem.ExactlyOnce, opt)
	wantError(t, err, idem.ErrConfig)
	_, err = idem.NewOperation("p", newMemory(t), idem.AtMostOnce, idem.WithReconcile(nil))
	wantError(t, err, idem.ErrConfig)
	caps := newMemory(t).Capabilities()
	caps.Features = 0
	_, err = idem.NewOperation("p", &declares{caps: caps}, idem.AtMostOnce, opt)
	wantError(t, err, idem.ErrConfig)
}

func TestKeyStaysUncertainWhenItsClaimIsGivenBack(t *testing.T) {
	t.Parallel()
	take := func(_ context.Context, do func() error) error { return do() }
	slow := func(_ context.Context, do func() error) error { err := do(); time.Sleep(20 * time.Second); return err }
	for _, row := range []struct {
		name string
		g    idem.Guarantee
		over func(cancel func()) []hook // the claim over the uncertain record, and its repetitions
	}{
		{"cancelled", idem.AtMostOnce, func(cancel func()) []hook {
			return []hook{func(_ context.Context, do func() error) error { defer cancel(); return do() }}
		}},
		{"replies lost", idem.AtMostOnce, func(func()) []hook { return []hook{loses, loses, loses} }},
		{"too slow", idem.AtMostOnce, func(func()) []hook { return []hook{slow} }},
		{"hold, cancelled", idem.AtLeastOnce, func(cancel func()) []hook {
			return []hook{func(_ context.Context, do func() error) error { defer cancel(); return do() }}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store, pay := newSpy(t), new(charge)
				var opts []idem.OperationOption
				if row.g == idem.AtLeastOnce {
					opts = append(opts, idem.WithFailurePolicy(idem.PolicyHold))
				}
				op := operationOn(t, store, row.g, opts...)
				_ = idem.Do(t.Context(), "pay-42", func(context.Context) error { return context.Canceled }, idem.On(op))

				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				store.claims = append([]hook{take}, row.over(cancel)...)
				store.set(&store.renews, fails)
				var asked atomic.Int64
				_, err := idem.Execute(ctx, "pay-42", pay.run, idem.On(op), asks(&asked, idem.NotRun(), nil))
				if wantError(t, err, idem.ErrStore); asked.Load() != 0 {
					t.Fatal("it was asked")
				}
				_, err = idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op))
				if e := idemError(t, err, idem.ErrOutcomeUnknown); !e.Final || pay.runs.Load() != 0 {
					t.Fatalf("%+v, %d runs of what may have run before", e, pay.runs.Load())
				}
			})
		})
	}
}

func TestFollowerReconcilesWhatItsLeaderDoesNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, pay := newSpy(t), new(charge)
		op := operationOn(t, store, idem.AtMostOnce)
		_ = idem.Do(t.Context(), "pay-42", func(context.Context) error { return context.Canceled }, idem.On(op))
		store.claims = append(store.claims, after(100*time.Millisecond))
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op))
			wantError(t, err, idem.ErrOutcomeUnknown)
		})
		synctest.Wait()
		var asked atomic.Int64
		_, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op), asks(&asked, idem.NotRun(), nil))
		if wg.Wait(); err != nil || asked.Load() != 1 || pay.runs.Load() != 1 {
			t.Fatal(err, asked.Load(), pay.runs.Load())
		}
	})
}
