package conformance

import (
	"sync/atomic"
	"time"

	"github.com/idem-go/idem/driver"
)

var uncertaintyCases = []testCase{
	{
		"uncertainty/reconciling-takes-by-the-fence",
		"A claim with the fence of an uncertain record in Over takes it: the same generation, the next attempt, a higher fence, TookOver.",
		needs{guards, reconciling}, reconcilingTakes,
	},
	{
		"uncertainty/another-fence-takes-nothing",
		"A claim with another fence than the uncertain record's in Over is DecisionUncertain and changes nothing.",
		needs{guards, reconciling}, anotherFenceTakesNothing,
	},
	{
		"uncertainty/only-uncertain-records-are-reconciled",
		"Over takes neither a live claim nor a completed record.",
		needs{guards, reconciling}, onlyUncertainIsReconciled,
	},
	{
		"uncertainty/one-of-many-reconciles",
		"Of many claims with the fence of one uncertain record in Over, exactly one is granted.",
		needs{guards, reconciling}, oneReconciles,
	},
	{
		"uncertainty/old-owner-is-lost-after-reconciling",
		"After a reconciling claim the old owner's calls are ErrLost, and a lapse of the new one is uncertain again.",
		needs{guards, reconciling}, oldOwnerIsLost,
	},
}

// over is p of another caller that reconciles the record with the fence.
func over(p driver.ClaimParams, fence int64) driver.ClaimParams {
	p = again(p)
	p.Over = fence
	return p
}

func reconcilingTakes(s *suite) {
	for _, how := range []string{"lapsed", "completed to uncertain"} {
		p := guard(time.Millisecond)
		p.Key = key(how)
		won := s.grant(p)
		if how == "lapsed" {
			s.pass(p.Lease)
		} else {
			s.complete(doubt(p))
		}
		p.Lease = long
		rec := over(p, won.Fence)
		res := s.grant(rec)
		if res.Generation != won.Generation || res.Attempt != 2 || res.Fence <= won.Fence || !res.TookOver {
			s.Errorf("%s: generation %d, attempt %d, fence %d, TookOver %v; want %d, 2, above %d, TookOver",
				how, res.Generation, res.Attempt, res.Fence, res.TookOver, won.Generation, won.Fence)
		}
		s.expect(driver.DecisionInFlight, over(p, won.Fence))
		s.complete(completion(rec))
		s.expect(driver.DecisionCompleted, again(p))
	}
}

func anotherFenceTakesNothing(s *suite) {
	p, won := s.lapsed()
	s.unchanged(p, func() {
		for _, fence := range []int64{won.Fence - 1, won.Fence + 1, 1} {
			s.expect(driver.DecisionUncertain, over(p, fence))
		}
	})
}

func onlyUncertainIsReconciled(s *suite) {
	p := guard(long)
	won := s.grant(p)
	s.unchanged(p, func() { s.expect(driver.DecisionInFlight, over(p, won.Fence)) })
	s.complete(completion(p))
	s.unchanged(p, func() { s.expect(driver.DecisionCompleted, over(p, won.Fence)) })
}

func oneReconciles(s *suite) {
	p, won := s.lapsed()
	p.Lease = long
	handles := s.handles(4)
	var granted atomic.Int32
	s.parallel(32, func(i int) {
		switch d := s.tryOn(handles[i%len(handles)], over(p, won.Fence)).Decision; d {
		case driver.DecisionClaimed:
			granted.Add(1)
		case driver.DecisionInFlight:
		default:
			s.Errorf("the decision is %v, want Claimed or InFlight", d)
		}
	})
	if n := granted.Load(); n != 1 {
		s.Errorf("%d reconciling claims were granted, want 1", n)
	}
}

func oldOwnerIsLost(s *suite) {
	p, won := s.lapsed()
	rec := over(p, won.Fence)
	now := s.grant(rec)
	s.lost(p, "Complete", "Release", "Renew")
	s.pass(rec.Lease)
	if res := s.expect(driver.DecisionUncertain, again(p)); res.Fence != now.Fence {
		s.Errorf("the uncertain record has fence %d, want the reconciling claim's, %d", res.Fence, now.Fence)
	}
	s.expect(driver.DecisionUncertain, over(p, won.Fence))
}
