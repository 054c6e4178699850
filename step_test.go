package idem_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
)

// journey is a function of three steps that counts the runs of each and fails
// behind the n-th as it is told to.
type journey struct {
	steps [3]atomic.Int64
	fail  func(behind int) error
}

func (j *journey) run(ctx context.Context) (int, error) {
	sum := 0
	for i := range j.steps {
		n, err := idem.Step(ctx, fmt.Sprint("step ", i), func(context.Context) (int, error) {
			return int(j.steps[i].Add(1)) * 10, nil
		})
		if err != nil {
			return 0, err
		}
		if sum += n; j.fail != nil {
			if err := j.fail(i); err != nil {
				return 0, err
			}
		}
	}
	return sum, nil
}

func (j *journey) counts() [3]int64 {
	return [3]int64{j.steps[0].Load(), j.steps[1].Load(), j.steps[2].Load()}
}

func TestFinishedStepsAreNotRunAgainInTheirGeneration(t *testing.T) { // CASES N5
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		op := newOperation(t, idem.AtLeastOnce)
		failed := false
		j := &journey{fail: func(behind int) error {
			if behind == 1 && !failed {
				failed = true
				return context.DeadlineExceeded
			}
			return nil
		}}
		if _, err := idem.Execute(t.Context(), "trip", j.run, idem.On(op)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		sum, err := idem.Execute(t.Context(), "trip", j.run, idem.On(op), idem.WithRetention(time.Minute))
		if err != nil || sum != 30 || j.counts() != [3]int64{1, 1, 1} {
			t.Fatal("after a release:", sum, err, j.counts())
		}
		time.Sleep(2 * time.Minute) // the outcome expires, the steps' records do not
		sum, err = idem.Execute(t.Context(), "trip", j.run, idem.On(op))
		if err != nil || sum != 60 || j.counts() != [3]int64{2, 2, 2} {
			t.Fatal("in a new generation:", sum, err, j.counts())
		}
	})
}

func TestTakeoverResumesBehindTheLastFinishedStep(t *testing.T) { // CASES N5
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newSpy(t)
		op := operationOn(t, store, idem.AtLeastOnce, idem.WithLeaseTTL(time.Second))
		// The owner dies in its third step: nothing of it reaches the store any more.
		dying, over := make(chan struct{}), make(chan struct{})
		j := new(journey)
		go func() {
			defer close(over)
			other := operationOn(t, store, idem.AtLeastOnce, idem.WithLeaseTTL(time.Second))
			_, _ = idem.Execute(context.Background(), "trip", func(ctx context.Context) (int, error) {
				_, _ = idem.Step(ctx, "step 0", func(context.Context) (int, error) { return int(j.steps[0].Add(1)) * 10, nil })
				_, _ = idem.Step(ctx, "step 1", func(context.Context) (int, error) { return int(j.steps[1].Add(1)) * 10, nil })
				_, _ = idem.Step(ctx, "step 2", func(context.Context) (int, error) {
					store.set(&store.renews, fails)
					store.set(&store.completes, fails)
					store.set(&store.releases, fails)
					close(dying)
					<-ctx.Done()
					return 0, ctx.Err()
				})
				return 0, ctx.Err()
			}, idem.On(other))
		}()
		<-dying
		<-over
		store.set(&store.renews, nil)
		store.set(&store.completes, nil)
		store.set(&store.releases, nil)
		time.Sleep(time.Second)
		res, err := idem.ExecuteResult(t.Context(), "trip", j.run, idem.On(op))
		if err != nil || res.Attempt != 2 || j.counts() != [3]int64{1, 1, 1} {
			t.Fatalf("%+v, %v, %v", res, err, j.counts())
		}
	})
}

func TestStepsNestAndRunInParallel(t *testing.T) {
	t.Parallel()
	op := newOperation(t, idem.AtLeastOnce)
	var inner, leaf atomic.Int64
	fn := func(fail error) func(context.Context) (int, error) {
		return func(ctx context.Context) (int, error) {
			var wg sync.WaitGroup
			for _, name := range []string{"a", "b"} {
				wg.Go(func() {
					_, err := idem.Step(ctx, name, func(ctx context.Context) (int, error) {
						inner.Add(1)
						if a, _ := idem.FromContext(ctx); a.Key() != "trip" || a.Operation() != "payments" {
							t.Error("a step is not seen as part of its operation:", a.Key())
						}
						return idem.Step(ctx, "same name", func(context.Context) (int, error) { return int(leaf.Add(1)), nil })
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			return 0, fail
		}
	}
	_, _ = idem.Execute(t.Context(), "trip", fn(context.Canceled), idem.On(op))
	_, err := idem.Execute(t.Context(), "trip", fn(nil), idem.On(op))
	if err != nil || inner.Load() != 2 || leaf.Load() != 2 {
		t.Fatal(err, inner.Load(), leaf.Load())
	}
}

func TestRunInsideAStepHasStepsOfItsOwn(t *testing.T) {
	t.Parallel()
	op, runs := newOperation(t, idem.AtLeastOnce), 0
	refund := func(ctx context.Context, fail error) error {
		return idem.Do(ctx, "refund-42", func(ctx context.Context) error {
			_, err := idem.Step(ctx, "send", func(context.Context) (int, error) { runs++; return 0, nil })
			return errors.Join(err, fail)
		}, idem.On(op))
	}
	_ = idem.Do(t.Context(), "pay-42", func(ctx context.Context) error {
		_, err := idem.Step(ctx, "refund", func(ctx context.Context) (int, error) { return 0, refund(ctx, context.DeadlineExceeded) })
		return err
	}, idem.On(op))
	if err := refund(t.Context(), nil); err != nil || runs != 1 {
		t.Fatalf("%v: the step ran %d times, since its run was begun somewhere else", err, runs)
	}
}

func TestStepsThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()
	one := func(context.Context) (int, error) { return 1, nil }
	op := newOperation(t, idem.AtLeastOnce)
	_, outside := idem.Step(t.Context(), "a", one)
	var leaked context.Context
	says := map[string]error{"outside a run": outside}
	err := idem.Do(t.Context(), "trip", func(ctx context.Context) error {
		leaked = ctx //nolint:fatcontext // the leak is the case
		_, err := idem.Step(ctx, "a", one)
		says["runs twice in this run"] = second(idem.Step(ctx, "a", one))
		says["name what it does"] = second(idem.Step(ctx, " ", one))
		says[`the function of the step "b" is nil`] = second(idem.Step[int](ctx, "b", nil))
		says["cannot be stored"] = second(idem.Step(ctx, "c", func(context.Context) (func(), error) { return func() {}, nil }))
		return err
	}, idem.On(op))
	if err != nil {
		t.Fatal(err)
	}
	for want, err := range says {
		if wantError(t, err, idem.ErrConfig); !strings.Contains(err.Error(), want) {
			t.Errorf("%v\n\tdoes not say %q", err, want)
		}
	}
	_, err = idem.Step(leaked, "late", one)
	wantError(t, err, idem.ErrLeaseLost)
}

func TestFailedStepCanBeTriedAgainInItsRun(t *testing.T) {
	t.Parallel()
	for _, g := range []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce, idem.ExactlyOnce} {
		var store driver.Driver = newMemory(t)
		if g == idem.ExactlyOnce {
			store = newLedger(t)
		}
		op, inner, tries := operationOn(t, store, g), 0, 0
		got, err := idem.Execute(t.Context(), "trip", func(ctx context.Context) (n int, err error) {
			for range 3 {
				n, err = idem.Step(ctx, "charge", func(ctx context.Context) (int, error) {
					_, err := idem.Step(ctx, "inner", func(context.Context) (int, error) { inner++; return 0, nil })
					if tries++; tries < 3 {
						err = errors.Join(err, errCut)
					}
					return tries, err
				})
				if err == nil {
					return n, second(idem.Step(ctx, "charge", func(context.Context) (int, error) { return 0, nil }))
				}
			}
			return n, err
		}, idem.On(op))
		want := map[idem.Guarantee]int{idem.AtLeastOnce: 1, idem.AtMostOnce: 1, idem.ExactlyOnce: 3}[g]
		if wantError(t, err, idem.ErrConfig); !strings.Contains(err.Error(), "runs twice") || got != 3 || tries != 3 || inner != want {
			t.Errorf("%v: %d, %v; %d tries, the inner step ran %d times", g, got, err, tries, inner)
		}
	}
}

func TestStepIsRefusedWhileItRuns(t *testing.T) {
	t.Parallel()
	op := newOperation(t, idem.AtLeastOnce)
	err := idem.Do(t.Context(), "trip", func(ctx context.Context) error {
		for range 2 { // the refusal of the second does not free the name of the first
			_, err := idem.Step(ctx, "a", func(context.Context) (int, error) {
				for range 2 {
					if _, err := idem.Step(ctx, "a", func(context.Context) (int, error) { return 1, nil }); err == nil {
						t.Error("it runs twice at once")
					}
				}
				return 0, errCut
			})
			if !errors.Is(err, errCut) {
				return err
			}
		}
		return nil
	}, idem.On(op))
	if err != nil {
		t.Fatal(err)
	}
}

func TestStepOfAGuardIsNotRunAgainAfterNotRun(t *testing.T) {
	t.Parallel()
	op := newOperation(t, idem.AtMostOnce)
	failed := false
	j := &journey{fail: func(behind int) error {
		if behind == 0 && !failed {
			failed = true
			return context.DeadlineExceeded
		}
		return nil
	}}
	_, _ = idem.Execute(t.Context(), "trip", j.run, idem.On(op))
	if rec, _, _ := op.Inspect(t.Context(), "trip"); rec.State != driver.StateUncertain {
		t.Fatal(rec.State)
	}
	if err := op.Resolve(t.Context(), "trip", idem.NotRun()); err != nil {
		t.Fatal(err)
	}
	if _, err := idem.Execute(t.Context(), "trip", j.run, idem.On(op)); err != nil || j.counts() != [3]int64{1, 1, 1} {
		t.Fatal(err, j.counts())
	}
}

func TestStepInAnInboxJustRuns(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	op := operationOn(t, l, idem.ExactlyOnce)
	j := &journey{fail: func(behind int) error {
		if behind == 2 {
			return errDeclined
		}
		return nil
	}}
	for range 2 {
		if _, err := idem.Execute(t.Context(), "trip", j.run, idem.On(op)); !errors.Is(err, errDeclined) {
			t.Fatal(err)
		}
	}
	if j.counts() != [3]int64{2, 2, 2} {
		t.Fatal(j.counts())
	}
}

func TestStepTooLargeToKeepRunsAgain(t *testing.T) {
	t.Parallel()
	op := newOperation(t, idem.AtLeastOnce, idem.WithMaxResultSize(100))
	runs := 0
	fn := func(fail error) func(context.Context) (int, error) {
		return func(ctx context.Context) (int, error) {
			text, err := idem.Step(ctx, "large", func(context.Context) (string, error) { runs++; return strings.Repeat("x", 1000), nil })
			if err != nil || len(text) != 1000 {
				t.Error(len(text), err)
			}
			return 0, fail
		}
	}
	_, _ = idem.Execute(t.Context(), "trip", fn(context.Canceled), idem.On(op))
	if _, err := idem.Execute(t.Context(), "trip", fn(nil), idem.On(op)); err != nil || runs != 2 {
		t.Fatal(err, runs)
	}
}

// A run that dies resumes behind its last finished step.
func ExampleStep() {
	store, _ := idemmemory.New()
	orders, _ := idem.NewOperation("orders", store, idem.AtLeastOnce)
	down := true
	for range 2 {
		err := idem.Do(context.Background(), "order-7", func(ctx context.Context) error {
			charge, err := idem.Step(ctx, "charge", func(context.Context) (string, error) {
				fmt.Println("charging")
				return "ch-1", nil
			})
			if err != nil {
				return err
			}
			if down {
				down = false
				return fmt.Errorf("mail server: %w", context.DeadlineExceeded)
			}
			fmt.Println("mailing the receipt for", charge)
			return nil
		}, idem.On(orders))
		fmt.Println(err)
	}
	// Output:
	// charging
	// mail server: context deadline exceeded
	// mailing the receipt for ch-1
	// <nil>
}
