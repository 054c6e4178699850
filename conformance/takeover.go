package conformance

import (
	"bytes"
	"time"

	"github.com/idem-go/idem/driver"
)

var takeoverCases = []testCase{
	{
		"takeover/lapsed-lease-is-taken-over",
		"A lapsed lease is taken over by the next claim: the same generation, the next attempt, a higher fence, TookOver, and the fingerprint from before.",
		needs{leases}, lapsedLeaseIsTakenOver,
	},
	{
		"takeover/stale-owner-changes-nothing",
		"After a takeover the old owner's Complete, Release and Renew are ErrLost and leave the new owner's record as it is.",
		needs{leases}, staleOwnerChangesNothing,
	},
	{
		"takeover/stale-claim-is-a-stranger",
		"After a takeover the old owner's claim, sent again, is in flight like any other.",
		needs{leases}, staleClaimIsAStranger,
	},
	{
		"takeover/another-fingerprint-takes-nothing",
		"A lapsed lease is not taken over by a claim with another fingerprint: that one is DecisionInFlight with no lease left and the stored fingerprint.",
		needs{leases}, anotherFingerprintTakesNothing,
	},
	{
		"takeover/incomparable-fingerprints-take-over",
		"A lapsed lease is taken over where one side has no fingerprint or another version of it.",
		needs{leases}, incomparableFingerprintsTakeOver,
	},
	{
		"takeover/without-a-fingerprint-keeps-the-stored-one",
		"A takeover without a fingerprint keeps the stored one, one with a fingerprint replaces it.",
		needs{leases}, takeoverKeepsTheFingerprint,
	},
	{
		"takeover/any-fingerprint-after-fence-memory",
		"A lease that lapsed more than FenceMemory ago is free for a claim with any fingerprint.",
		needs{leases, freeTime}, anyFingerprintAfterFenceMemory,
	},
}

func lapsedLeaseIsTakenOver(s *suite) {
	p := lease(time.Millisecond)
	p.Fingerprint = fingerprint("mine")
	before := s.grant(p)
	for attempt := 2; attempt <= 3; attempt++ {
		s.pass(p.Lease)
		p = again(p)
		res := s.grant(p)
		if res.Generation != before.Generation || res.Attempt != attempt || res.Fence <= before.Fence {
			s.Errorf("generation %d, attempt %d, fence %d; want %d, %d, above %d",
				res.Generation, res.Attempt, res.Fence, before.Generation, attempt, before.Fence)
		}
		if !res.TookOver || res.Own || !bytes.Equal(res.Fingerprint, p.Fingerprint) {
			s.Errorf("TookOver %v, Own %v, fingerprint %q; want TookOver, not Own, %q",
				res.TookOver, res.Own, res.Fingerprint, p.Fingerprint)
		}
		s.within("LeaseLeft", res.LeaseLeft, p.Lease)
		before.Fence = res.Fence
	}
}

// takenOver returns an old owner whose key another claim holds, and that one.
func (s *suite) takenOver() (old, now driver.ClaimParams) {
	old = lease(time.Millisecond)
	s.grant(old)
	s.pass(old.Lease)
	now = again(old)
	now.Lease = long
	s.grant(now)
	return old, now
}

func staleOwnerChangesNothing(s *suite) {
	old, now := s.takenOver()
	s.unchanged(now, func() { s.lost(old, "Complete", "Release", "Renew") })
	s.complete(completion(now))
	s.unchanged(now, func() { s.lost(old, "Complete", "Release", "Renew") })
}

func staleClaimIsAStranger(s *suite) {
	old, now := s.takenOver()
	if res := s.expect(driver.DecisionInFlight, old); res.Own {
		s.Errorf("the old owner's claim is Own")
	}
	s.complete(completion(now))
	if res := s.expect(driver.DecisionCompleted, old); res.Own {
		s.Errorf("the old owner's claim of the completed key is Own")
	}
}

func anotherFingerprintTakesNothing(s *suite) {
	p := lease(time.Millisecond)
	p.Fingerprint = fingerprint("mine")
	s.grant(p)
	s.pass(p.Lease)
	for range 2 {
		other := again(p)
		other.Fingerprint = fingerprint("other")
		res := s.expect(driver.DecisionInFlight, other)
		if res.LeaseLeft != 0 || !bytes.Equal(res.Fingerprint, p.Fingerprint) {
			s.Errorf("LeaseLeft %v, fingerprint %q; want 0, %q", res.LeaseLeft, res.Fingerprint, p.Fingerprint)
		}
	}
	same := again(p)
	if res := s.grant(same); !res.TookOver {
		s.Errorf("the right fingerprint did not take over")
	}
	s.complete(completion(same))
}

func incomparableFingerprintsTakeOver(s *suite) {
	for _, f := range [][2]string{{"v1: a", ""}, {"", "v1: a"}, {"v1: a", "v2: b"}} {
		p := lease(time.Millisecond)
		p.Key = key(f[0] + " then " + f[1])
		p.Fingerprint = []byte(f[0])
		s.grant(p)
		s.pass(p.Lease)
		next := again(p)
		next.Fingerprint = []byte(f[1])
		if res := s.try(next); res.Decision != driver.DecisionClaimed || !res.TookOver {
			s.Errorf("fingerprint %q after %q: %v, TookOver %v; want a takeover", f[1], f[0], res.Decision, res.TookOver)
		}
	}
}

func takeoverKeepsTheFingerprint(s *suite) {
	p := lease(time.Millisecond)
	p.Fingerprint = fingerprint("mine")
	s.grant(p)
	for _, f := range []struct{ given, before string }{
		{"", "v1: mine"},
		{"v2: new", "v1: mine"},
		{"v2: new", "v2: new"},
	} {
		s.pass(p.Lease)
		next := again(p)
		next.Fingerprint = []byte(f.given)
		if res := s.grant(next); string(res.Fingerprint) != f.before {
			s.Errorf("a takeover with %q found the fingerprint %q, want %q", f.given, res.Fingerprint, f.before)
		}
	}
}

func anyFingerprintAfterFenceMemory(s *suite) {
	p := lease(long)
	p.Fingerprint = fingerprint("mine")
	before := s.grant(p)
	s.pass(p.Lease + driver.FenceMemory)
	other := again(p)
	other.Fingerprint = fingerprint("other")
	if res := s.grant(other); res.Fence <= before.Fence {
		s.Errorf("the fence is %d after %d", res.Fence, before.Fence)
	}
	dup := s.expect(driver.DecisionInFlight, again(p))
	if !bytes.Equal(dup.Fingerprint, other.Fingerprint) {
		s.Errorf("the stored fingerprint is %q, want %q", dup.Fingerprint, other.Fingerprint)
	}
}
