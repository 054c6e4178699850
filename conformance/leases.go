package conformance

import (
	"time"

	"github.com/idem-go/idem/driver"
)

var leaseCases = []testCase{
	{
		"leases/end-on-time",
		"A lease of 300 ms is in flight for 300 ms, and free right afterwards.",
		needs{leases}, func(s *suite) { s.leaseEndsOnTime(300 * time.Millisecond) },
	},
	{
		"leases/keep-their-unit",
		"A lease of 1500 ms is in flight for 1500 ms, and free right afterwards: neither 1 s nor 2 s.",
		needs{leases}, func(s *suite) { s.leaseEndsOnTime(1500 * time.Millisecond) },
	},
	{
		"leases/short-ones-round-up",
		"A lease below the backend's precision is rounded up to it: neither refused nor for ever.",
		needs{leases}, shortLeasesRoundUp,
	},
	{
		"leases/renewal-keeps-the-key",
		"A renewed lease keeps the key beyond its first end.",
		needs{leases}, renewalKeepsTheKey,
	},
	{
		"leases/renewed-lease-ends-too",
		"A renewed lease ends when its renewal is over.",
		needs{leases}, renewedLeaseEnds,
	},
	{
		"leases/lapsed-owner-still-owns",
		"While nobody has taken the key over, the owner renews, completes and releases it although its lease has lapsed.",
		needs{leases}, lapsedOwnerStillOwns,
	},
	{
		"leases/lapsed-claim-knows-itself",
		"A claim sent again with its own token is its own also after the lease has lapsed, with no lease left and nothing prolonged.",
		needs{leases}, func(s *suite) { s.lapsedClaimKnowsItself(lease(time.Millisecond)) },
	},
}

func (s *suite) leaseEndsOnTime(ttl time.Duration) {
	p := lease(ttl)
	sent := s.now()
	s.grant(p)
	s.endsAfter(ttl, sent, driver.DecisionInFlight, func() driver.ClaimResult {
		res := s.try(again(p))
		if res.Decision == driver.DecisionInFlight {
			s.within("LeaseLeft", res.LeaseLeft, ttl)
		}
		return res
	})
}

// endsAfter wants claim to answer with the decision until d is over, and then
// to be granted. What ends began between sent and this call.
func (s *suite) endsAfter(d, sent time.Duration, while driver.Decision, claim func() driver.ClaimResult) {
	began := s.now()
	for {
		asked := s.now()
		switch res := claim(); res.Decision {
		case driver.DecisionClaimed:
			if at := s.now() - sent; at < d {
				s.Errorf("the key was free after %v, want %v", at, d)
			}
			return
		case while:
			if late := asked - began - d; late > 2*s.caps.ClockPrecision {
				s.Fatalf("the key was not free %v after its end", late)
			}
		default:
			s.Fatalf("the decision is %v, want %v until the end", res.Decision, while)
		}
		s.advance(d / 20)
	}
}

func shortLeasesRoundUp(s *suite) {
	for _, ttl := range []time.Duration{1, 500 * time.Microsecond} {
		p := lease(ttl)
		p.Key = key(ttl.String())
		res := s.grant(p)
		s.within("LeaseLeft", res.LeaseLeft, max(ttl, s.caps.ClockPrecision))
		s.pass(ttl)
		if next := s.grant(again(p)); !next.TookOver {
			s.Errorf("the next claim did not take over")
		}
	}
}

func renewalKeepsTheKey(s *suite) {
	p := lease(s.short())
	s.grant(p)
	s.within("LeaseLeft", s.renew(p, long).LeaseLeft, long)
	s.pass(2 * p.Lease)
	res := s.expect(driver.DecisionInFlight, again(p))
	s.within("LeaseLeft for another caller", res.LeaseLeft, long)
	s.complete(completion(p))
}

func renewedLeaseEnds(s *suite) {
	p := lease(time.Millisecond)
	s.grant(p)
	sent := s.now()
	s.renew(p, 300*time.Millisecond)
	s.endsAfter(300*time.Millisecond, sent, driver.DecisionInFlight, func() driver.ClaimResult {
		return s.try(again(p))
	})
}

func lapsedOwnerStillOwns(s *suite) {
	for what, settle := range map[string]func(p driver.ClaimParams){
		"renew": func(p driver.ClaimParams) {
			s.renew(p, long)
			s.expect(driver.DecisionInFlight, again(p))
		},
		"complete": func(p driver.ClaimParams) {
			s.complete(completion(p))
			s.expect(driver.DecisionCompleted, again(p))
		},
		"release": func(p driver.ClaimParams) {
			s.release(p)
			if s.grant(again(p)).TookOver {
				s.Errorf("the claim after the release took over")
			}
		},
	} {
		p := lease(time.Millisecond)
		p.Key = key(what)
		s.grant(p)
		s.pass(p.Lease)
		settle(p)
	}
}

func (s *suite) lapsedClaimKnowsItself(p driver.ClaimParams) {
	won := s.grant(p)
	s.pass(p.Lease)
	p.Lease = long
	res := s.grant(p)
	if !res.Own || res.Fence != won.Fence || res.Attempt != won.Attempt || res.LeaseLeft != 0 {
		s.Errorf("Own %v, fence %d, attempt %d, LeaseLeft %v; want Own, fence %d, attempt %d, nothing left",
			res.Own, res.Fence, res.Attempt, res.LeaseLeft, won.Fence, won.Attempt)
	}
	if next := s.try(again(p)); next.Decision == driver.DecisionInFlight {
		s.Errorf("the lease was prolonged: %v are left", next.LeaseLeft)
	}
}
