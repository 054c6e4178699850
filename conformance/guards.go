package conformance

import (
	"bytes"
	"time"

	"github.com/idem-go/idem/driver"
)

var guardCases = []testCase{
	{
		"guards/live-guard-is-in-flight",
		"While the lease of a guard lasts, other claims are DecisionInFlight.",
		needs{guards}, liveGuardIsInFlight,
	},
	{
		"guards/lapsed-guard-is-uncertain",
		"A guard whose lease has lapsed is never taken over: other claims are DecisionUncertain since the lease's end, with the guard's fence.",
		needs{guards}, lapsedGuardIsUncertain,
	},
	{
		"guards/record-rule-wins",
		"What a lapse means is the record's: a claim with TakeOver does not take a lapsed guard.",
		needs{guards}, guardRuleWins,
	},
	{
		"guards/lease-rule-wins",
		"What a lapse means is the record's: a claim with Uncertain takes a lapsed lease, and stores its own rule.",
		needs{leases, guards}, leaseRuleWins,
	},
	{
		"guards/late-owner-completes",
		"The owner of a guard completes it although its lease has lapsed, and the outcome is replayed.",
		needs{guards}, lateGuardCompletes,
	},
	{
		"guards/renewed-guard-is-in-flight-again",
		"The owner of a guard renews it although its lease has lapsed: it is in flight again.",
		needs{guards}, renewedGuardIsInFlight,
	},
	{
		"guards/lapsed-claim-knows-itself",
		"A guard's claim sent again with its own token is its own also after the lease has lapsed, with no lease left and nothing prolonged.",
		needs{guards}, func(s *suite) { s.lapsedClaimKnowsItself(guard(time.Millisecond)) },
	},
	{
		"guards/given-back-guard-runs-again",
		"A guard that was given back is granted to the next claim.",
		needs{guards}, givenBackGuardRuns,
	},
	{
		"guards/completing-to-uncertain-holds-at-once",
		"A claim completed to StateUncertain is DecisionUncertain at once and for good; the completion sent again is Already.",
		needs{guards}, uncertainAtOnce,
	},
	{
		"guards/kept-for-ever",
		"An uncertain record with RetainForever never expires and is never purged.",
		needs{guards, freeTime}, guardIsKeptForEver,
	},
	{
		"guards/retention-counts-from-the-lapse",
		"The retention of an uncertain record counts from the end of its lease; after it the key is free, as a new generation.",
		needs{guards}, retentionCountsFromLapse,
	},
	{
		"guards/tombstone-follows-the-retention",
		"An uncertain record past its retention is DecisionExpired while its tombstone lasts.",
		needs{guards, tombstones}, uncertainTombstone,
	},
}

func liveGuardIsInFlight(s *suite) {
	p := guard(long)
	s.grant(p)
	res := s.expect(driver.DecisionInFlight, again(p))
	s.within("LeaseLeft", res.LeaseLeft, long)
}

// lapsed returns a guard whose lease has ended, and its claim's answer.
func (s *suite) lapsed() (driver.ClaimParams, driver.ClaimResult) {
	p := guard(time.Millisecond)
	p.Fingerprint = fingerprint("mine")
	res := s.grant(p)
	s.pass(p.Lease)
	return p, res
}

func lapsedGuardIsUncertain(s *suite) {
	p, won := s.lapsed()
	s.unchanged(p, func() {
		for _, other := range []string{"mine", "other"} {
			dup := again(p)
			dup.Fingerprint = fingerprint(other)
			res := s.expect(driver.DecisionUncertain, dup)
			if res.Fence != won.Fence || res.LifeLeft != driver.RetainForever || len(res.Outcome) != 0 {
				s.Errorf("fence %d, LifeLeft %v, outcome %q; want %d, RetainForever, none",
					res.Fence, res.LifeLeft, res.Outcome, won.Fence)
			}
			if !bytes.Equal(res.Fingerprint, p.Fingerprint) {
				s.Errorf("the stored fingerprint is %q, want %q", res.Fingerprint, p.Fingerprint)
			}
			s.sameTime("CompletedAt", res.CompletedAt, won.ClaimedAt.Add(max(p.Lease, s.caps.ClockPrecision)))
		}
	})
}

func guardRuleWins(s *suite) {
	p, _ := s.lapsed()
	taker := lease(long)
	taker.Fingerprint = p.Fingerprint
	s.unchanged(p, func() { s.expect(driver.DecisionUncertain, taker) })
}

func leaseRuleWins(s *suite) {
	s.grant(lease(time.Millisecond))
	s.pass(time.Millisecond)
	p := guard(time.Millisecond)
	if res := s.grant(p); !res.TookOver || res.OnLapse != driver.Uncertain {
		s.Errorf("TookOver %v, OnLapse %v; want TookOver, Uncertain", res.TookOver, res.OnLapse)
	}
	s.pass(p.Lease)
	s.expect(driver.DecisionUncertain, lease(long))
}

func lateGuardCompletes(s *suite) {
	p, _ := s.lapsed()
	s.expect(driver.DecisionUncertain, again(p))
	s.complete(completion(p))
	if res := s.expect(driver.DecisionCompleted, again(p)); !bytes.Equal(res.Outcome, outcome) {
		s.Errorf("the outcome is %q, want %q", res.Outcome, outcome)
	}
}

func renewedGuardIsInFlight(s *suite) {
	p, _ := s.lapsed()
	s.renew(p, long)
	s.expect(driver.DecisionInFlight, again(p))
}

func givenBackGuardRuns(s *suite) {
	p := guard(long)
	s.grant(p)
	s.release(p)
	if res := s.grant(again(p)); res.TookOver || res.Attempt != 2 {
		s.Errorf("TookOver %v, attempt %d; want no takeover, attempt 2", res.TookOver, res.Attempt)
	}
}

func uncertainAtOnce(s *suite) {
	p := guard(long)
	won := s.grant(p)
	done := s.complete(doubt(p))
	s.unchanged(p, func() {
		res := s.expect(driver.DecisionUncertain, again(p))
		s.sameTime("CompletedAt", res.CompletedAt, done.CompletedAt)
		if res.Fence != won.Fence || len(res.Outcome) != 0 || res.LifeLeft != driver.RetainForever {
			s.Errorf("fence %d, outcome %q, LifeLeft %v; want %d, none, RetainForever",
				res.Fence, res.Outcome, res.LifeLeft, won.Fence)
		}
		if !s.complete(completion(p)).Already {
			s.Errorf("the second completion is not Already")
		}
		s.lost(p, "Renew", "Release")
	})
}

func guardIsKeptForEver(s *suite) {
	p, _ := s.lapsed()
	second := again(p)
	second.Key = key("completed to uncertain")
	s.grant(second)
	s.complete(doubt(second))
	for range 3 {
		s.pass(1000 * time.Hour)
		if _, ok := driver.As[driver.Purger](s.d); ok {
			s.purge(100)
		}
		s.expect(driver.DecisionUncertain, again(p))
		s.expect(driver.DecisionUncertain, again(second))
	}
}

func retentionCountsFromLapse(s *suite) {
	p := guard(s.short())
	p.Retention = 200 * time.Millisecond
	sent := s.now()
	won := s.grant(p)
	s.pass(p.Lease)
	s.endsAfter(p.Lease+p.Retention, sent, driver.DecisionUncertain, func() driver.ClaimResult {
		res := s.try(again(p))
		if res.Decision == driver.DecisionUncertain {
			s.within("LifeLeft", res.LifeLeft, p.Retention)
		} else if res.Generation != res.Fence || res.Attempt != 1 || res.Fence <= won.Fence || res.TookOver {
			s.Errorf("the claim after the retention is %+v, want a new generation with a higher fence", res)
		}
		return res
	})
}

func uncertainTombstone(s *suite) {
	p := guard(time.Millisecond)
	p.Retention, p.Tombstone = time.Millisecond, 300*time.Millisecond
	sent := s.now()
	s.grant(p)
	s.pass(p.Lease + p.Retention)
	s.endsAfter(p.Lease+p.Retention+p.Tombstone, sent, driver.DecisionExpired, func() driver.ClaimResult {
		return s.try(again(p))
	})
}
