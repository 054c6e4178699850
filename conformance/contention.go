package conformance

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/idem-go/idem/driver"
)

var contentionCases = []testCase{
	{
		"contention/one-of-many-claims",
		"Of many claims of a new key at once, over several handles, exactly one is granted and all others are in flight.",
		needs{leasesOrGuards}, oneOfManyClaims,
	},
	{
		"contention/one-of-many-takes-over",
		"Of many claims of a lapsed lease at once, exactly one takes over.",
		needs{leases}, oneTakesOver,
	},
	{
		"contention/one-of-many-runs-after-a-release",
		"Of many claims of a released key at once, exactly one is granted.",
		needs{leasesOrGuards}, oneRunsAfterRelease,
	},
	{
		"contention/one-of-many-runs-after-the-retention",
		"Of many claims of an expired key at once, exactly one is granted.",
		needs{leasesOrGuards}, oneRunsAfterRetention,
	},
	{
		"contention/owners-exclude-each-other",
		"Callers that claim and release one key over and over never own it at the same time, and fences rise from owner to owner.",
		needs{leasesOrGuards}, ownersExclude,
	},
	{
		"contention/late-completion-or-takeover",
		"Where a lapsed owner completes while others claim, either it completes and all replay, or one takes over and the completion is ErrLost.",
		needs{leases}, lateCompletionOrTakeover,
	},
	{
		"contention/keys-do-not-disturb-each-other",
		"Claims of different keys at once are all granted, and complete.",
		needs{leasesOrGuards}, keysDoNotDisturb,
	},
}

// oneWins wants one of many claims like p to be granted and the others to have
// the decision.
func (s *suite) oneWins(p driver.ClaimParams, others driver.Decision) {
	const n = 64
	handles := s.handles(4)
	var granted atomic.Int32
	s.parallel(n, func(i int) {
		switch d := s.tryOn(handles[i%len(handles)], again(p)).Decision; d {
		case driver.DecisionClaimed:
			granted.Add(1)
		case others:
		default:
			s.Errorf("the decision is %v, want Claimed or %v", d, others)
		}
	})
	if g := granted.Load(); g != 1 {
		s.Errorf("%d of %d claims were granted, want 1", g, n)
	}
}

func oneOfManyClaims(s *suite) { s.oneWins(s.caller(), driver.DecisionInFlight) }

func oneTakesOver(s *suite) {
	s.grant(lease(time.Millisecond))
	s.pass(time.Millisecond)
	s.oneWins(lease(long), driver.DecisionInFlight)
}

func oneRunsAfterRelease(s *suite) {
	p := s.caller()
	s.grant(p)
	s.release(p)
	s.oneWins(p, driver.DecisionInFlight)
}

func oneRunsAfterRetention(s *suite) {
	p := s.caller()
	s.grant(p)
	c := completion(p)
	c.Retention = time.Millisecond
	s.complete(c)
	s.pass(c.Retention)
	s.oneWins(p, driver.DecisionInFlight)
}

func ownersExclude(s *suite) {
	handles := s.handles(4)
	var owners atomic.Int32
	var fence atomic.Int64
	s.parallel(8, func(i int) {
		d := handles[i%len(handles)]
		for range 20 {
			p := s.caller()
			res := s.tryOn(d, p)
			if res.Decision != driver.DecisionClaimed {
				time.Sleep(time.Millisecond)
				continue
			}
			if n := owners.Add(1); n != 1 {
				s.Errorf("%d callers own the key at once", n)
			}
			if before := fence.Swap(res.Fence); res.Fence <= before {
				s.Errorf("fence %d after fence %d", res.Fence, before)
			}
			time.Sleep(time.Millisecond) // for the others to get in, if they can
			owners.Add(-1)
			if _, err := d.Release(s.ctx, driver.ReleaseParams{Key: p.Key, Token: p.Token}); err != nil {
				s.Errorf("releasing: %v", err)
			}
		}
	})
}

func lateCompletionOrTakeover(s *suite) {
	handles := s.handles(4)
	for round := range 10 {
		p := lease(time.Millisecond)
		p.Key = key(fmt.Sprint("round", round))
		s.grant(p)
		s.pass(p.Lease)
		p.Lease = long
		var completed, granted atomic.Int32
		s.parallel(8, func(i int) {
			d := handles[i%len(handles)]
			if i == 0 {
				if _, err := d.Complete(s.ctx, completion(p)); err == nil {
					completed.Add(1)
				}
				return
			}
			if s.tryOn(d, again(p)).Decision == driver.DecisionClaimed {
				granted.Add(1)
			}
		})
		if c, g := completed.Load(), granted.Load(); c+g != 1 {
			s.Errorf("the owner completed %d times and %d claims took over, want one of them", c, g)
		}
	}
}

func keysDoNotDisturb(s *suite) {
	handles := s.handles(4)
	callers := s.callers(32)
	s.parallel(len(callers), func(i int) {
		if res := s.tryOn(handles[i%len(handles)], callers[i]); res.Decision != driver.DecisionClaimed {
			s.Errorf("the claim of a key of its own is %v", res.Decision)
		}
	})
	s.parallel(len(callers), func(i int) {
		if _, err := handles[i%len(handles)].Complete(s.ctx, completion(callers[i])); err != nil {
			s.Errorf("completing: %v", err)
		}
	})
}
