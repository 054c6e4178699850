package idem_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/codec"
	"github.com/idem-go/idem/driver"
)

func TestOutcomeIsRecordedOnceTheStoreIsBack(t *testing.T) { // CASES C8, L11
	t.Parallel()
	for name, failing := range map[string]hook{"not taken": fails, "reply lost": loses} {
		synctest.Test(t, func(t *testing.T) {
			store, pay := newSpy(t), new(charge)
			down := 3
			store.set(&store.completes, func(ctx context.Context, do func() error) error {
				if down--; down >= 0 {
					return failing(ctx, do)
				}
				return do()
			})
			op := operationOn(t, store, idem.AtLeastOnce)
			res, err := idem.ExecuteResult(t.Context(), "pay-42", pay.run, idem.On(op))
			if err != nil || !res.Recorded || res.CompletedAt.IsZero() {
				t.Fatalf("%s: %+v, %v", name, res, err)
			}
			if again, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op)); err != nil || again != res.Value {
				t.Fatalf("%s: duplicate: %v, %v", name, again, err)
			}
		})
	}
}

func TestCallerKeepsItsValueWhenTheStoreStaysDown(t *testing.T) { // CASES C8
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, pay := newSpy(t), new(charge)
		store.set(&store.completes, fails)
		var log bytes.Buffer
		var notices []idem.NoticeKind
		op := operationOn(t, store, idem.AtLeastOnce, idem.WithLeaseTTL(10*time.Second),
			idem.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
			idem.WithObserver(idem.Observer{Notice: func(_ context.Context, n idem.Notice) { notices = append(notices, n.Kind) }}))
		start := time.Now()
		res, err := idem.ExecuteResult(t.Context(), "pay-42", pay.run, idem.On(op))
		if err != nil || res.Recorded || res.Value.Amount != 1 {
			t.Fatalf("%+v, %v", res, err)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Fatal("the caller waited beyond its lease:", took)
		}
		if notices[len(notices)-1] != idem.NoticeNotRecorded || !strings.Contains(log.String(), "outcome not recorded") {
			t.Fatalf("nobody was told: %v, %s", notices, log.String())
		}
	})
}

func TestOwnerThatLostItsLeaseKeepsItsValueAndLeavesTheNewRecord(t *testing.T) { // CASES L5
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, pay := newSpy(t), new(charge)
		store.set(&store.renews, fails)
		op := operationOn(t, store, idem.AtLeastOnce, idem.WithLeaseTTL(time.Second))
		other := operationOn(t, store, idem.AtLeastOnce)
		res, err := idem.ExecuteResult(t.Context(), "pay-42", func(ctx context.Context) (receipt, error) {
			time.Sleep(2 * time.Second) // it ignores its context
			if _, err := idem.Execute(context.Background(), "pay-42", pay.run, idem.On(other)); err != nil {
				t.Error(err)
			}
			return receipt{Amount: 99}, nil
		}, idem.On(op))
		if err != nil || res.Recorded || res.Value.Amount != 99 {
			t.Fatalf("%+v, %v", res, err)
		}
		if got, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op)); err != nil || got.Amount != 1 {
			t.Fatal("the new owner's record was touched:", got, err)
		}
	})
}

func TestResultOverTheLimitCompletesWithoutItsBody(t *testing.T) { // CASES S9
	t.Parallel()
	large := strings.Repeat("x", 2000)
	tooLarge := func(ctx context.Context, do func() error) error { return driver.ErrTooLarge }
	for name, set := range map[string]func(*spy) []idem.OperationOption{
		"option": func(*spy) []idem.OperationOption { return []idem.OperationOption{idem.WithMaxResultSize(1000)} },
		"backend": func(s *spy) []idem.OperationOption {
			s.set(&s.completes, func(ctx context.Context, do func() error) error {
				s.set(&s.completes, nil)
				return tooLarge(ctx, do)
			})
			return nil
		},
	} {
		store := newSpy(t)
		op := operationOn(t, store, idem.AtLeastOnce, set(store)...)
		runs := 0
		call := func() (string, error) {
			return idem.Execute(t.Context(), "pay-42", func(context.Context) (string, error) { runs++; return large, nil }, idem.On(op))
		}
		if got, err := call(); err != nil || got != large {
			t.Fatalf("%s: the first caller has %d bytes, %v", name, len(got), err)
		}
		_, err := call()
		if wantError(t, err, idem.ErrResultOmitted); runs != 1 {
			t.Fatalf("%s: %d runs", name, runs)
		}
	}
}

// damaged is a store in which one byte of each outcome has changed.
type damaged struct {
	*spy

	at   int // which byte
	size int // of the last outcome
}

func (d *damaged) Claim(ctx context.Context, p driver.ClaimParams) (driver.ClaimResult, error) {
	res, err := d.spy.Claim(ctx, p)
	if d.size = len(res.Outcome); d.at < d.size {
		res.Outcome = bytes.Clone(res.Outcome)
		res.Outcome[d.at] ^= 0x03
	}
	return res, err
}

func TestDamagedOutcomeIsUnreadableAndDoesNotRun(t *testing.T) { // rule 22
	t.Parallel()
	store, pay := &damaged{spy: newSpy(t), at: 1 << 20}, new(charge)
	op := operationOn(t, store, idem.AtLeastOnce)
	for range 2 {
		if _, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op)); err != nil {
			t.Fatal(err)
		}
	}
	for store.at = range store.size {
		_, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op))
		if wantError(t, err, idem.ErrUnreadable); pay.runs.Load() != 1 {
			t.Fatal("it ran again")
		}
	}
}

func TestRetentionAndTombstone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		op, pay := newOperation(t, idem.AtLeastOnce, idem.WithTombstone(time.Hour)), new(charge)
		call := func(opts ...idem.ExecuteOption) error {
			_, err := idem.Execute(t.Context(), "pay-42", pay.run, append(opts, idem.On(op), idem.WithRetention(time.Minute))...)
			return err
		}
		if err := call(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute + time.Millisecond)
		wantError(t, call(), idem.ErrKeyExpired)
		time.Sleep(time.Hour)
		if err := call(); err != nil || pay.runs.Load() != 2 {
			t.Fatal("the key did not become free:", err, pay.runs.Load())
		}
	})
}

func TestRetainOverridesTheRetention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		op, runs := newOperation(t, idem.AtLeastOnce), 0
		call := func() {
			_ = idem.Do(t.Context(), "pay-42", func(ctx context.Context) error {
				runs++
				a, _ := idem.FromContext(ctx)
				wantError(t, a.Retain(30), idem.ErrConfig)
				return errors.Join(errDeclined, a.Retain(time.Second))
			}, idem.On(op))
		}
		call()
		time.Sleep(999 * time.Millisecond)
		call()
		if runs != 1 {
			t.Fatal("it ran again within what it retains")
		}
		time.Sleep(2 * time.Millisecond)
		if call(); runs != 2 {
			t.Fatal("its outcome outlived what it retains")
		}
	})
}

func TestDoNotRecordFreesALeaseAndLeavesAGuardUncertain(t *testing.T) {
	t.Parallel()
	for g, want := range map[idem.Guarantee]driver.State{
		idem.AtLeastOnce: driver.StateReleased, idem.AtMostOnce: driver.StateUncertain,
	} {
		op := newOperation(t, g)
		res, err := idem.ExecuteResult(t.Context(), "pay-42", func(ctx context.Context) (int, error) {
			a, _ := idem.FromContext(ctx)
			return 7, a.DoNotRecord()
		}, idem.On(op))
		if err != nil || res.Recorded || res.Value != 7 {
			t.Fatalf("%v: %+v, %v", g, res, err)
		}
		if rec, _, err := op.Inspect(t.Context(), "pay-42"); err != nil || rec.State != want {
			t.Fatalf("%v: %v, %v; want %v", g, rec.State, err, want)
		}
	}
}

func TestNothingCanBeAskedForAfterTheReturn(t *testing.T) {
	t.Parallel()
	op := newOperation(t, idem.AtLeastOnce)
	var a *idem.Attempt
	_ = idem.Do(t.Context(), "pay-42", func(ctx context.Context) error { a, _ = idem.FromContext(ctx); return nil }, idem.On(op))
	wantError(t, a.DoNotRecord(), idem.ErrConfig)
	wantError(t, a.Retain(time.Hour), idem.ErrConfig)
	wantError(t, a.Extend(t.Context(), time.Hour), idem.ErrLeaseLost)
}

func TestFailOpenRunsOnlyWhenTheStoreCannotBeAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, pay := newSpy(t), new(charge)
		op := operationOn(t, store, idem.AtLeastOnce, idem.WithFailOpen())
		store.claims = append(store.claims, fails, fails, fails)
		for i, recorded := range []bool{false, true, true} {
			res, err := idem.ExecuteResult(t.Context(), "pay-42", pay.run, idem.On(op))
			if err != nil || res.Recorded != recorded {
				t.Fatalf("call %d: %+v, %v", i, res, err)
			}
		}
		if pay.runs.Load() != 2 {
			t.Fatal(pay.runs.Load(), "runs")
		}
	})
}

// explodes is a codec and a transform that panic.
type explodes struct{ codec.Codec }

func (explodes) Append([]byte, any) ([]byte, error)          { panic("codec") }
func (explodes) Decode([]byte, any) error                    { panic("codec") }
func (explodes) Seal([]byte, []byte, []byte) ([]byte, error) { panic("transform") }
func (explodes) Open([]byte, []byte, []byte) ([]byte, error) { panic("transform") }

func TestPanicOfACodecNeitherRunsAgainNorTakesTheAnswer(t *testing.T) {
	t.Parallel()
	for _, g := range []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce} {
		op, pay := newOperation(t, g), new(charge)
		bad := idem.WithCodec(explodes{codec.JSON()})
		got, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op), bad)
		if err != nil || got.Amount != 1 {
			t.Fatalf("%v: the caller has %v, %v", g, got, err)
		}
		_, err = idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op))
		wantError(t, err, idem.ErrResultOmitted)

		_, _ = idem.Execute(t.Context(), "pay-43", pay.run, idem.On(op), idem.WithCodec(codec.JSON()))
		_, err = idem.Execute(t.Context(), "pay-43", pay.run, idem.On(op), bad)
		if wantError(t, err, idem.ErrUnreadable); pay.runs.Load() != 2 {
			t.Fatalf("%v: %d runs", g, pay.runs.Load())
		}
	}
}

func TestPanicOfATransformNeitherRunsAgainNorTakesTheAnswer(t *testing.T) {
	t.Parallel()
	op, pay := newOperation(t, idem.AtLeastOnce, idem.WithTransforms(explodes{codec.JSON()})), new(charge)
	got, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op))
	if err != nil || got.Amount != 1 {
		t.Fatal(got, err)
	}
	_, err = idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op))
	if wantError(t, err, idem.ErrResultOmitted); pay.runs.Load() != 1 {
		t.Fatal(pay.runs.Load(), "runs")
	}
}

// listed is a codec that cannot be compared.
type listed struct {
	codec.Codec
	_ []string
}

func TestCodecNeedNotBeComparable(t *testing.T) {
	t.Parallel()
	op, pay := newOperation(t, idem.AtLeastOnce, idem.WithCodec(listed{Codec: codec.JSON()})), new(charge)
	for range 2 {
		for _, opts := range [][]idem.ExecuteOption{nil, {idem.WithCodec(listed{Codec: codec.MessagePack()})}} {
			if got, err := idem.Execute(t.Context(), "pay-42", pay.run, append(opts, idem.On(op))...); err != nil || got.Amount != 1 {
				t.Fatal(got, err)
			}
		}
	}
}

// pointerError panics if it is nil, as a function may return it by mistake.
type pointerError struct{ Text string }

func (e *pointerError) Error() string { return e.Text }

func TestErrorWithoutATextIsAFailure(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]idem.OperationOption{nil, {idem.Replayable[*pointerError]("pointer")}} {
		for _, g := range []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce} {
			op := newOperation(t, g, opts...)
			var none *pointerError
			fail := func(context.Context) error { return none }
			if err := idem.Do(t.Context(), "pay-42", fail, idem.On(op)); err != error(none) { //nolint:errorlint // unchanged
				t.Fatalf("%v: %T", g, err)
			}
			var replayed *idem.ReplayedError
			if err := idem.Do(t.Context(), "pay-42", fail, idem.On(op)); !errors.As(err, &replayed) || replayed.Error() == "" {
				t.Fatalf("%v: %T", g, err)
			}
		}
	}
}
