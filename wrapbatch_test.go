package idem_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
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

// batchDriver is the memory driver with batches, and counts what it is asked.
type batchDriver struct {
	driver.Driver

	claims, claimBatches, completions, completeBatches atomic.Int64

	sizes   sync.Map // of claim batches
	fail    error    // of the batches, as a whole
	failOne func(k driver.Key) error
	panics  bool
}

func newBatchDriver(t *testing.T) *batchDriver {
	t.Helper()
	m, err := idemmemory.New()
	if err != nil {
		t.Fatal(err)
	}
	return &batchDriver{Driver: m}
}

func (b *batchDriver) Unwrap() driver.Driver { return b.Driver }

func (b *batchDriver) Claim(ctx context.Context, p driver.ClaimParams) (driver.ClaimResult, error) {
	b.claims.Add(1)
	return b.Driver.Claim(ctx, p)
}

func (b *batchDriver) Complete(ctx context.Context, p driver.CompleteParams) (driver.CompleteResult, error) {
	b.completions.Add(1)
	return b.Driver.Complete(ctx, p)
}

func (b *batchDriver) ClaimBatch(ctx context.Context, p driver.ClaimBatchParams) (res driver.ClaimBatchResult, err error) {
	b.sizes.Store(b.claimBatches.Add(1), len(p.Claims))
	if b.panics {
		panic("driver")
	}
	seen := map[driver.Key]bool{}
	for i, c := range p.Claims {
		if seen[c.Key] || i > 0 && c.Key.String() < p.Claims[i-1].Key.String() && c.Key.ID < p.Claims[i-1].Key.ID {
			return res, fmt.Errorf("%v is there twice or out of order", c.Key)
		}
		seen[c.Key] = true
		a := driver.ClaimAnswer{}
		if b.failOne != nil {
			a.Err = b.failOne(c.Key)
		}
		if a.Err == nil {
			a.Result, a.Err = b.Driver.Claim(ctx, c)
		}
		res.Claims = append(res.Claims, a)
	}
	return res, b.fail // after it has happened: the reply is lost
}

func (b *batchDriver) CompleteBatch(ctx context.Context, p driver.CompleteBatchParams) (res driver.CompleteBatchResult, err error) {
	b.completeBatches.Add(1)
	for _, c := range p.Completions {
		a := driver.CompleteAnswer{}
		a.Result, a.Err = b.Driver.Complete(ctx, c)
		res.Completions = append(res.Completions, a)
	}
	return res, b.fail
}

func numbers(n int) (ins []int) {
	for i := range n {
		ins = append(ins, i)
	}
	return ins
}

func intKey(i int) (string, error) { return strconv.Itoa(i), nil }

type batchFunc = func(context.Context, []int) ([]int, []error)

func wrapBatch(t *testing.T, d driver.Driver, g idem.Guarantee, fn func(context.Context, int) (int, error), opts ...idem.WrapOption) batchFunc {
	t.Helper()
	op, err := idem.NewOperation("orders", d, g)
	if err != nil {
		t.Fatal(err)
	}
	run, err := idem.WrapBatch(op, intKey, fn, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestBatchTakesOneRoundTripForItsClaimsAndOneForItsOutcomes(t *testing.T) {
	t.Parallel()
	for _, g := range []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce} {
		d := newBatchDriver(t)
		var runs atomic.Int64
		var together sync.WaitGroup
		together.Add(100)
		run := wrapBatch(t, d, g, func(ctx context.Context, i int) (int, error) {
			runs.Add(1)
			if a, ok := idem.FromContext(ctx); !ok || a.Key() != strconv.Itoa(i) {
				t.Error("the function is in no run of its key")
			}
			together.Done()
			together.Wait() // they run at the same time
			return 2 * i, nil
		})
		for range 2 {
			outs, errs := run(t.Context(), numbers(100))
			for i := range 100 {
				if outs[i] != 2*i || errs[i] != nil {
					t.Fatal(i, outs[i], errs[i])
				}
			}
		}
		// On a busy machine not all come within the lingering; TestRoundTripsOfABatchAreExact counts without one.
		if n := d.claimBatches.Load() + d.claims.Load() + d.completeBatches.Load() + d.completions.Load(); n > 200 || runs.Load() != 100 {
			t.Errorf("%v: %d round trips for 100 runs and 100 replays, %d runs", g, n, runs.Load())
		}
	}
}

func TestRoundTripsOfABatchAreExact(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // nothing lingers
		d := newBatchDriver(t)
		run := wrapBatch(t, d, idem.AtLeastOnce, func(_ context.Context, i int) (int, error) { return i, nil })
		_, errs := run(t.Context(), numbers(1000))
		if err := errors.Join(errs...); err != nil || d.claimBatches.Load() != 10 || d.completeBatches.Load() != 10 || d.claims.Load()+d.completions.Load() != 0 {
			t.Error(err, d.claimBatches.Load(), d.completeBatches.Load(), d.claims.Load(), d.completions.Load())
		}
		_, errs = run(t.Context(), numbers(1000))
		if err := errors.Join(errs...); err != nil || d.claimBatches.Load() != 20 || d.completeBatches.Load() != 10 {
			t.Error(err, d.claimBatches.Load(), d.completeBatches.Load())
		}
	})
}

func TestWhatIsNotSentTogetherGoesOneByOne(t *testing.T) {
	t.Parallel()
	d := newBatchDriver(t)
	run := wrapBatch(t, d, idem.AtLeastOnce, func(_ context.Context, i int) (int, error) { return i, nil })
	if _, errs := run(t.Context(), numbers(3)); errors.Join(errs...) != nil || d.claims.Load() != 3 || d.claimBatches.Load() != 0 {
		t.Error(errs, d.claims.Load(), d.claimBatches.Load())
	}
	if outs, errs := run(t.Context(), nil); len(outs) != 0 || len(errs) != 0 {
		t.Error(outs, errs)
	}
	var order []int
	run = wrapBatch(t, newBatchDriver(t).Driver, idem.AtLeastOnce, func(_ context.Context, i int) (int, error) { order = append(order, i); return i, nil })
	if _, errs := run(t.Context(), numbers(20)); errors.Join(errs...) != nil || !slices.Equal(order, numbers(20)) {
		t.Error(errs, order)
	}
}

func TestEachInputOfABatchHasItsOwnAnswer(t *testing.T) {
	t.Parallel()
	d := newBatchDriver(t)
	op, err := idem.NewOperation("orders", d, idem.AtLeastOnce)
	if err != nil {
		t.Fatal(err)
	}
	type order struct {
		ID    string
		Cents int
	}
	key, err := idem.KeyPath[order]("ID")
	if err != nil {
		t.Fatal(err)
	}
	var runs atomic.Int64
	run, err := idem.WrapBatch(op, key, func(_ context.Context, o order) (int, error) {
		runs.Add(1)
		if o.Cents == 13 {
			return 0, errTest
		}
		return o.Cents, nil
	}, idem.WithInputFingerprint("Cents"), idem.WithFailurePolicy(idem.PolicyRelease))
	if err != nil {
		t.Fatal(err)
	}
	ins := []order{{"a", 1}, {"b", 13}, {"", 3}, {"a", 1}, {"a", 9}}
	for i := range 20 {
		ins = append(ins, order{fmt.Sprint("more ", i), 100 + i})
	}
	for try := range 2 {
		runs.Store(0)
		outs, errs := run(t.Context(), ins)
		want := []error{nil, errTest, idem.ErrInvalidKey, nil, idem.ErrMismatch}
		for i, w := range want {
			if !errors.Is(errs[i], w) || (errs[i] == nil) != (w == nil) {
				t.Errorf("try %d, input %d: %v, want %v", try, i, errs[i], w)
			}
		}
		if outs[0] != 1 || outs[3] != 1 || errors.Join(errs[5:]...) != nil || outs[14] != 109 {
			t.Error(outs, errs)
		}
		if n := runs.Load(); n != int64(22-21*try) {
			t.Errorf("try %d: %d runs", try, n)
		}
	}
}

var errTest = errors.New("test")

func TestBatchWhoseReplyIsLostIsSentAgainOneByOne(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(*batchDriver){
		"an error": func(b *batchDriver) { b.fail = errTest }, "a panic": func(b *batchDriver) { b.panics = true },
	} {
		d := newBatchDriver(t)
		breaks(d)
		var runs atomic.Int64
		run := wrapBatch(t, d, idem.AtLeastOnce, func(_ context.Context, i int) (int, error) { runs.Add(1); return i, nil })
		outs, errs := run(t.Context(), numbers(50))
		if err := errors.Join(errs...); err != nil || !slices.Equal(outs, numbers(50)) || runs.Load() != 50 || d.claims.Load() != 50 {
			t.Errorf("%s: %v, %d runs, %d claims", name, err, runs.Load(), d.claims.Load())
		}
	}
}

func TestClaimThatFailsInABatchIsTriedAgainAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // all of them are in one batch
		d := newBatchDriver(t)
		d.failOne = func(k driver.Key) error {
			switch k.ID {
			case "7":
				return driver.ErrConflict
			case "8":
				return driver.ErrCorrupt
			}
			return nil
		}
		run := wrapBatch(t, d, idem.AtLeastOnce, func(_ context.Context, i int) (int, error) { return i, nil })
		outs, errs := run(t.Context(), numbers(20))
		for i := range 20 {
			if i == 8 && !errors.Is(errs[i], idem.ErrUnreadable) || i != 8 && (errs[i] != nil || outs[i] != i) {
				t.Error(i, outs[i], errs[i])
			}
		}
		if d.claims.Load() != 1 {
			t.Error(d.claims.Load(), "single claims")
		}
	})
}

func TestBatchDoesNotWaitForACallThatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newBatchDriver(t)
		op, err := idem.NewOperation("orders", d, idem.AtLeastOnce, idem.WithWait(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		leave := make(chan struct{})
		held := make(chan error, 1)
		go func() {
			held <- idem.Do(context.Background(), "5", func(context.Context) error { <-leave; return nil }, idem.On(op))
		}()
		synctest.Wait()
		var ran atomic.Int64
		run, err := idem.WrapBatch(op, intKey, func(context.Context, int) (struct{}, error) {
			if ran.Add(1) == 19 {
				close(leave) // the one that is held follows the other call all the while
			}
			return struct{}{}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, errs := run(t.Context(), numbers(20))
		if err := errors.Join(append(errs, <-held)...); err != nil || ran.Load() != 19 || time.Since(began) > time.Second {
			t.Error(err, ran.Load(), time.Since(began))
		}
	})
}

func TestSlowFunctionDoesNotHoldUpTheOutcomesOfTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newBatchDriver(t)
		op, err := idem.NewOperation("orders", d, idem.AtLeastOnce)
		if err != nil {
			t.Fatal(err)
		}
		run, err := idem.WrapBatch(op, intKey, func(_ context.Context, i int) (int, error) {
			if i == 5 {
				time.Sleep(time.Minute) // longer than the lease
			}
			return i, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan []error)
		go func() { _, errs := run(context.Background(), numbers(20)); done <- errs }()
		time.Sleep(time.Second)
		for i := range 20 {
			rec, ok, err := op.Inspect(t.Context(), strconv.Itoa(i))
			if want := map[bool]driver.State{true: driver.StateClaimed, false: driver.StateCompleted}[i == 5]; err != nil || !ok || rec.State != want {
				t.Error(i, rec.State, ok, err)
			}
		}
		if err := errors.Join(<-done...); err != nil {
			t.Error(err)
		}
	})
}

func TestPanicInABatchGoesOnOnceTheOthersHaveEnded(t *testing.T) {
	t.Parallel()
	d := newBatchDriver(t)
	var ends atomic.Int64
	breaks := true
	run := wrapBatch(t, d, idem.AtLeastOnce, func(_ context.Context, i int) (int, error) {
		defer ends.Add(1)
		if i == 5 && breaks {
			panic("bug")
		}
		return i, nil
	})
	func() {
		defer func() {
			if p := recover(); p != "bug" || ends.Load() != 20 {
				t.Error(p, ends.Load())
			}
		}()
		run(t.Context(), numbers(20))
	}()
	breaks = false
	if _, errs := run(t.Context(), numbers(20)); errors.Join(errs...) != nil || ends.Load() != 21 {
		t.Error(errs, ends.Load())
	}
}

func TestGoexitInABatchEndsTheCaller(t *testing.T) {
	t.Parallel()
	run := wrapBatch(t, newBatchDriver(t), idem.AtLeastOnce, func(_ context.Context, i int) (int, error) {
		if i == 5 {
			runtime.Goexit()
		}
		return i, nil
	})
	over := make(chan bool)
	go func() {
		returned := false
		defer func() { over <- returned }()
		run(context.Background(), numbers(20))
		returned = true
	}()
	if <-over {
		t.Error("the caller went on")
	}
}

func TestBatchOfAContextThatHasEndedRunsNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	run := wrapBatch(t, newBatchDriver(t), idem.AtLeastOnce, func(context.Context, int) (int, error) { t.Error("it ran"); return 0, nil })
	_, errs := run(ctx, numbers(20))
	for _, err := range errs {
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

func TestWrongBatchIsRefused(t *testing.T) {
	t.Parallel()
	op, err := idem.NewOperation("orders", newBatchDriver(t), idem.AtLeastOnce)
	if err != nil {
		t.Fatal(err)
	}
	fn := func(_ context.Context, i int) (int, error) { return i, nil }
	for says, err := range map[string]error{
		"the operation is nil":    onlyErr(idem.WrapBatch(nil, intKey, fn)),
		"the key function is nil": onlyErr(idem.WrapBatch(op, nil, fn)),
		"the function is nil":     onlyErr(idem.WrapBatch[int, int](op, intKey, nil)),
		"was the unit":            onlyErr(idem.WrapBatch(op, intKey, fn, idem.WithWait(5))),
	} {
		if !errors.Is(err, idem.ErrConfig) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
}

func onlyErr[T any](_ T, err error) error { return err }
