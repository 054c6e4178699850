package conformance

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
)

var executeDeadCases = []testCase{
	{
		"execute/dead-owner-is-taken-over",
		"When the owner of a lease dies, duplicates are ErrInProgress until the lease ends, then the next call runs with a higher fence.",
		needs{leases}, deadOwnerIsTakenOver,
	},
	{
		"execute/dead-guard-never-runs-again",
		"When the owner of a guard dies, duplicates are ErrOutcomeUnknown, which is final once the lease has ended, and never run.",
		needs{guards}, deadGuardNeverRuns,
	},
	{
		"execute/held-key-never-runs-again",
		"Under PolicyHold a failure or a dead owner makes the key uncertain: nobody runs it again.",
		needs{leases}, heldKeyNeverRuns,
	},
	{
		"execute/operator-settles",
		"An operator who looks at an uncertain key and resolves it has the answer replayed; a forgotten key runs anew.",
		needs{guards, inspector, resolver}, operatorSettles,
	},
	{
		"execute/reconciling-settles",
		"WithReconcile settles an uncertain key with what it finds out, once for all callers.",
		needs{guards, reconciling}, reconcilingSettles,
	},
}

// dead is the driver of a process that dies before it records anything.
type dead struct{ driver.Driver }

func (dead) Complete(context.Context, driver.CompleteParams) (driver.CompleteResult, error) {
	return driver.CompleteResult{}, driver.ErrLost
}

func (dead) Release(context.Context, driver.ReleaseParams) (driver.ReleaseResult, error) {
	return driver.ReleaseResult{}, driver.ErrLost
}

// abandons runs the key in a process that dies with a short lease.
func (s *suite) abandons(g idem.Guarantee, opts ...idem.ExecuteOption) idem.Result[string] {
	op := s.operation(dead{s.d}, g, idem.WithLeaseTTL(s.life()), idem.WithMaxLease(s.life()))
	res, err := s.call(op, returns("lost"), opts...)
	if err != nil || res.Recorded {
		s.Errorf("the owner that dies: recorded %v, %v", res.Recorded, err)
	}
	return res
}

func deadOwnerIsTakenOver(s *suite) {
	before := s.abandons(idem.AtLeastOnce)
	s.pass(s.life())
	op := s.operation(s.peer(), idem.AtLeastOnce)
	if res := s.runs(op); res.Attempt != 2 || res.Fence <= before.Fence {
		s.Errorf("attempt %d, fence %d; want 2, above %d", res.Attempt, res.Fence, before.Fence)
	}
	s.replays(op, "ran")
}

func deadGuardNeverRuns(s *suite) {
	s.abandons(idem.AtMostOnce)
	s.pass(s.life())
	for _, d := range s.handles(2) {
		if e := s.denies(s.operation(d, idem.AtMostOnce), idem.ErrOutcomeUnknown); !e.Final {
			s.Errorf("the answer is not final")
		}
	}
}

func heldKeyNeverRuns(s *suite) {
	hold := idem.WithFailurePolicy(idem.PolicyHold)
	s.abandons(idem.AtLeastOnce, hold)
	s.pass(s.life())
	s.denies(s.operation(s.peer(), idem.AtLeastOnce), idem.ErrOutcomeUnknown)

	op := s.operation(s.d, idem.AtLeastOnce, hold)
	scope := idem.WithScope("fails")
	failure := errors.New("declined")
	if _, err := s.call(op, func(context.Context) (string, error) { return "", failure }, scope); !errors.Is(err, failure) {
		s.Errorf("the failure came back as %v", err)
	}
	s.denies(op, idem.ErrOutcomeUnknown, scope)
}

func operatorSettles(s *suite) {
	s.abandons(idem.AtMostOnce)
	s.pass(s.life())
	op := s.operation(s.d, idem.AtMostOnce)
	rec, ok, err := op.Inspect(s.ctx, number)
	if err != nil || !ok || rec.State != driver.StateUncertain {
		s.Fatalf("Inspect: %v, found %v, %v; want Uncertain", rec.State, ok, err)
	}
	if err := op.Resolve(s.ctx, number, idem.Succeeded("settled"), idem.IfFence(rec.Fence+1)); err == nil {
		s.Errorf("Resolve with another fence succeeded")
	}
	if err := op.Resolve(s.ctx, number, idem.Succeeded("settled"), idem.IfFence(rec.Fence)); err != nil {
		s.Errorf("Resolve: %v", err)
	}
	s.replays(op, "settled")
	if err := op.Forget(s.ctx, number); err != nil {
		s.Errorf("Forget: %v", err)
	}
	if res := s.runs(op); res.Attempt != 1 || res.Fence <= rec.Fence {
		s.Errorf("attempt %d, fence %d after Forget; want 1, above %d", res.Attempt, res.Fence, rec.Fence)
	}
}

func reconcilingSettles(s *suite) {
	s.abandons(idem.AtMostOnce)
	s.pass(s.life())
	var asked atomic.Int32
	ask := idem.WithReconcile(func(context.Context, string) (idem.Outcome, error) {
		asked.Add(1)
		time.Sleep(20 * time.Millisecond)
		return idem.Succeeded("found out"), nil
	})
	handles := s.handles(4)
	s.parallel(8, func(i int) {
		op := s.operation(handles[i%len(handles)], idem.AtMostOnce, ask, idem.WithWait(long))
		res, err := s.call(op, s.neverRuns)
		if err != nil || res.Value != "found out" {
			s.Errorf("a call gave %q, %v; want what reconciling found out", res.Value, err)
		}
	})
	if n := asked.Load(); n != 1 {
		s.Errorf("%d callers asked, want 1", n)
	}
}
