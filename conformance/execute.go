package conformance

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
)

var executeCases = []testCase{
	{
		"execute/runs-once-and-replays",
		"idem.Execute runs the function once, and its duplicates, on any handle, get the same value.",
		needs{leases}, func(s *suite) { s.runsOnce(idem.AtLeastOnce) },
	},
	{
		"execute/guard-runs-once-and-replays",
		"Under AtMostOnce idem.Execute runs the function once, and its duplicates, on any handle, get the same value.",
		needs{guards}, func(s *suite) { s.runsOnce(idem.AtMostOnce) },
	},
	{
		"execute/zero-results-are-results",
		"Zero, empty and nil results are stored and replayed as what they were.",
		needs{leases}, zeroResultsAreResults,
	},
	{
		"execute/one-of-many-runs",
		"Of many calls at once, over several handles, one runs the function, and all that wait get its value.",
		needs{leases}, oneOfManyRuns,
	},
	{
		"execute/in-progress-is-told",
		"While the function runs, duplicates on another handle are ErrInProgress with a time to retry after, however long it takes.",
		needs{leases}, inProgressIsTold,
	},
	{
		"execute/mismatch-is-refused",
		"A call with another fingerprint is ErrMismatch in flight, after a lapse and after the completion, and the right one is served afterwards.",
		needs{leases}, mismatchIsRefused,
	},
	{
		"execute/failures-replay-or-release",
		"A failure that is an answer is replayed, one that is passing lets the next call run.",
		needs{leases}, failuresReplayOrRelease,
	},
}

const number = "pay-42"

// operation is an operation of a process of its own, on the handle d.
func (s *suite) operation(d driver.Driver, g idem.Guarantee, opts ...idem.OperationOption) *idem.Operation {
	logger := slog.New(slog.NewTextHandler(notices{s.recorder}, nil))
	op, err := idem.NewOperation("conformance", d, g, append(opts, idem.WithLogger(logger))...)
	if err != nil {
		s.Fatalf("idem.NewOperation: %v", err)
	}
	return op
}

// notices logs what the engine has to say to the case.
type notices struct{ r *recorder }

func (n notices) Write(p []byte) (int, error) {
	n.r.log(string(p))
	return len(p), nil
}

// call executes the key and returns what the call says.
func (s *suite) call(op *idem.Operation, fn func(context.Context) (string, error), opts ...idem.ExecuteOption) (idem.Result[string], error) {
	return idem.ExecuteResult(s.ctx, number, fn, append(opts, idem.On(op))...)
}

func returns(v string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return v, nil }
}

// runs wants the call to run the function.
func (s *suite) runs(op *idem.Operation, opts ...idem.ExecuteOption) idem.Result[string] {
	res, err := s.call(op, returns("ran"), opts...)
	if err != nil || res.Value != "ran" || res.Replayed || !res.Recorded {
		s.Errorf("the call gave %q (replayed %v, recorded %v), %v; want a run", res.Value, res.Replayed, res.Recorded, err)
	}
	return res
}

// replays wants the call to be answered with the value.
func (s *suite) replays(op *idem.Operation, value string, opts ...idem.ExecuteOption) {
	res, err := s.call(op, s.neverRuns, opts...)
	if err != nil || res.Value != value || !res.Replayed {
		s.Errorf("the call gave %q (replayed %v), %v; want a replay of %q", res.Value, res.Replayed, err, value)
	}
}

// denies wants the call to fail for the reason.
func (s *suite) denies(op *idem.Operation, reason error, opts ...idem.ExecuteOption) idem.Error {
	_, err := s.call(op, s.neverRuns, opts...)
	var e *idem.Error
	if !errors.As(err, &e) || !errors.Is(err, reason) {
		s.Fatalf("the call returned %v, want %v", err, reason)
	}
	return *e
}

func (s *suite) neverRuns(context.Context) (string, error) {
	s.Errorf("the function ran")
	return "ran again", nil
}

func (s *suite) runsOnce(g idem.Guarantee) {
	first := s.runs(s.operation(s.d, g))
	if first.Fence <= 0 || first.Attempt != 1 || first.CompletedAt.IsZero() {
		s.Errorf("fence %d, attempt %d, completed at %v", first.Fence, first.Attempt, first.CompletedAt)
	}
	for _, d := range s.handles(2) {
		s.replays(s.operation(d, g), "ran")
	}
}

func zeroResultsAreResults(s *suite) {
	op := s.operation(s.d, idem.AtLeastOnce)
	zeroResult(s, op, "int", 0)
	zeroResult(s, op, "string", "")
	zeroResult(s, op, "bool", false)
	zeroResult(s, op, "struct", struct{}{})
	zeroResult[[]int](s, op, "nil slice", nil)
	zeroResult(s, op, "empty slice", []int{})
	zeroResult[*int](s, op, "nil pointer", nil)
	zeroResult(s, op, "bytes", []byte{0, 0xff})
}

func zeroResult[T any](s *suite, op *idem.Operation, id string, v T) {
	for call := range 2 {
		res, err := idem.ExecuteResult(s.ctx, id, func(context.Context) (T, error) { return v, nil }, idem.On(op))
		if err != nil || !reflect.DeepEqual(res.Value, v) || res.Replayed != (call == 1) {
			s.Errorf("%s, call %d: %#v (replayed %v), %v; want %#v", id, call, res.Value, res.Replayed, err, v)
		}
	}
}

func oneOfManyRuns(s *suite) {
	var ran atomic.Int32
	var ops []*idem.Operation
	for _, d := range s.handles(4) {
		ops = append(ops, s.operation(d, idem.AtLeastOnce, idem.WithWait(long)))
	}
	s.parallel(40, func(i int) {
		res, err := s.call(ops[i%len(ops)], func(context.Context) (string, error) {
			ran.Add(1)
			time.Sleep(50 * time.Millisecond)
			return "ran", nil
		})
		if err != nil || res.Value != "ran" {
			s.Errorf("a call gave %q, %v; want the one run's value", res.Value, err)
		}
	})
	if n := ran.Load(); n != 1 {
		s.Errorf("the function ran %d times, want once", n)
	}
}

func inProgressIsTold(s *suite) {
	ttl := s.life()
	op := s.operation(s.d, idem.AtLeastOnce, idem.WithLeaseTTL(ttl))
	other := s.operation(s.peer(), idem.AtLeastOnce, idem.WithLeaseTTL(ttl))
	res, err := s.call(op, func(context.Context) (string, error) {
		for range 4 { // twice as long as the lease
			if e := s.denies(other, idem.ErrInProgress); e.RetryAfter <= 0 {
				s.Errorf("RetryAfter is %v", e.RetryAfter)
			}
			time.Sleep(ttl / 2)
		}
		return "ran", nil
	})
	if err != nil || !res.Recorded {
		s.Errorf("the first call: recorded %v, %v", res.Recorded, err)
	}
	s.replays(other, "ran")
}

func mismatchIsRefused(s *suite) {
	mine, others := idem.WithFingerprint("mine"), idem.WithFingerprint("other")
	op := s.operation(s.d, idem.AtLeastOnce)
	s.abandons(idem.AtLeastOnce, mine)
	s.denies(op, idem.ErrMismatch, others)
	s.pass(s.life())
	s.denies(op, idem.ErrMismatch, others)
	s.runs(op, mine)
	s.denies(op, idem.ErrMismatch, others)
	s.replays(op, "ran", mine)
}

func failuresReplayOrRelease(s *suite) {
	op := s.operation(s.d, idem.AtLeastOnce)
	fails := func(err error) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return "", err }
	}
	if _, err := s.call(op, fails(context.DeadlineExceeded)); !errors.Is(err, context.DeadlineExceeded) {
		s.Errorf("a passing failure came back as %v", err)
	}
	declined := errors.New("declined")
	if _, err := s.call(op, fails(declined)); !errors.Is(err, declined) {
		s.Errorf("after a passing failure the call returned %v, want its own failure", err)
	}
	_, err := s.call(op, s.neverRuns)
	var replayed *idem.ReplayedError
	if !errors.As(err, &replayed) || replayed.Message != declined.Error() {
		s.Errorf("the duplicate returned %v, want the stored failure", err)
	}
}
