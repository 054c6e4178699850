package conformance

import (
	"bytes"
	"errors"
	"time"

	"github.com/idem-go/idem/driver"
)

var settlingCases = []testCase{
	{
		"settling/completing-twice-keeps-the-first-outcome",
		"Completing again with the token that completed the record succeeds with Already and changes nothing.",
		needs{leasesOrGuards}, completingTwice,
	},
	{
		"settling/releasing-twice-succeeds",
		"Releasing again with the token that left the stub succeeds.",
		needs{leasesOrGuards}, releasingTwice,
	},
	{
		"settling/completed-claim-cannot-be-renewed-or-released",
		"Once the record is completed, Renew and Release with the owner's token are ErrLost and change nothing.",
		needs{leasesOrGuards}, completedIsFinal,
	},
	{
		"settling/released-claim-cannot-be-completed-or-renewed",
		"Once the claim is released, Complete and Renew with its token are ErrLost, also when another claim holds the key.",
		needs{leasesOrGuards}, releasedIsFinal,
	},
	{
		"settling/absent-record-is-lost",
		"Complete, Release and Renew of a key without a record are ErrLost and create nothing.",
		needs{leasesOrGuards}, absentIsLost,
	},
	{
		"settling/stranger-changes-nothing",
		"Complete, Release and Renew with a token that does not hold the key are ErrLost and leave the record as it is.",
		needs{leasesOrGuards}, strangerChangesNothing,
	},
	{
		"settling/renew-never-shortens",
		"Renew prolongs the lease to at least the given time from now and never shortens it.",
		needs{leasesOrGuards}, renewNeverShortens,
	},
	{
		"settling/second-claim-is-renewed-like-the-first",
		"A claim after a release has a lease of its own, which is renewed like any other.",
		needs{leasesOrGuards}, secondClaimIsRenewed,
	},
	{
		"settling/any-handle-settles",
		"The owner's token renews, completes and releases through every handle of the store.",
		needs{leasesOrGuards}, anyHandleSettles,
	},
	{
		"settling/broken-parameters-are-refused",
		"Complete, Release and Renew with parameters that break the contract are ErrInvalid and change nothing.",
		needs{leasesOrGuards}, brokenSettlingIsRefused,
	},
}

func completingTwice(s *suite) {
	p := s.caller()
	s.grant(p)
	first := s.complete(completion(p))
	if first.Already {
		s.Errorf("the first completion is Already")
	}
	second := completion(p)
	second.Outcome, second.Retention = []byte("another outcome"), 10*long
	s.unchanged(p, func() {
		res := s.complete(second)
		if !res.Already {
			s.Errorf("the second completion is not Already")
		}
		s.sameTime("CompletedAt", res.CompletedAt, first.CompletedAt)
	})
	res := s.expect(driver.DecisionCompleted, again(p))
	if !bytes.Equal(res.Outcome, outcome) {
		s.Errorf("the outcome is %q, want the first, %q", res.Outcome, outcome)
	}
	s.within("LifeLeft", res.LifeLeft, long)
}

func releasingTwice(s *suite) {
	p := s.caller()
	s.grant(p)
	s.release(p)
	s.release(p)
}

func completedIsFinal(s *suite) {
	p := s.caller()
	s.grant(p)
	s.complete(completion(p))
	s.unchanged(p, func() { s.lost(p, "Renew", "Release") })
}

func releasedIsFinal(s *suite) {
	p := s.caller()
	s.grant(p)
	s.release(p)
	s.lost(p, "Complete", "Renew")
	next := again(p)
	s.grant(next)
	s.unchanged(p, func() { s.lost(p, "Complete", "Renew", "Release") })
	s.complete(completion(next))
}

func absentIsLost(s *suite) {
	p := s.caller()
	s.lost(p, "Complete", "Release", "Renew")
	if res := s.grant(p); res.Attempt != 1 {
		s.Errorf("the first claim is attempt %d", res.Attempt)
	}
}

func strangerChangesNothing(s *suite) {
	p := s.caller()
	s.grant(p)
	s.unchanged(p, func() { s.lost(again(p), "Complete", "Release", "Renew") })
	s.complete(completion(p))
	s.unchanged(p, func() { s.lost(again(p), "Complete", "Release", "Renew") })
}

func renewNeverShortens(s *suite) {
	p := s.caller()
	s.grant(p)
	res := s.renew(p, 10*long)
	s.within("LeaseLeft after prolonging", res.LeaseLeft, 10*long)
	res = s.renew(p, time.Millisecond)
	if least := 10*long - s.now() - time.Second; res.LeaseLeft < least {
		s.Errorf("a short renewal left %v of the lease, want at least %v", res.LeaseLeft, least)
	}
	dup := s.expect(driver.DecisionInFlight, again(p))
	if least := 10*long - s.now() - time.Second; dup.LeaseLeft < least {
		s.Errorf("another caller sees %v left of the lease, want at least %v", dup.LeaseLeft, least)
	}
}

func secondClaimIsRenewed(s *suite) {
	p := s.caller()
	p.Lease = s.short()
	s.grant(p)
	s.renew(p, s.short())
	s.release(p)
	p = again(p)
	s.grant(p)
	s.renew(p, long)
	s.pass(2 * s.short())
	s.expect(driver.DecisionInFlight, again(p))
	s.complete(completion(p))
}

func anyHandleSettles(s *suite) {
	other := s.peer()
	p := s.caller()
	s.grant(p)
	if _, err := other.Renew(s.ctx, driver.RenewParams{Key: p.Key, Token: p.Token, Lease: long}); err != nil {
		s.Errorf("renewing through another handle: %v", err)
	}
	if _, err := other.Release(s.ctx, driver.ReleaseParams{Key: p.Key, Token: p.Token}); err != nil {
		s.Errorf("releasing through another handle: %v", err)
	}
	p = again(p)
	s.grant(p)
	if _, err := other.Complete(s.ctx, completion(p)); err != nil {
		s.Errorf("completing through another handle: %v", err)
	}
	s.expect(driver.DecisionCompleted, again(p))
}

func brokenSettlingIsRefused(s *suite) {
	p := s.caller()
	s.grant(p)
	invalid := func(what string, err error) {
		if !errors.Is(err, driver.ErrInvalid) {
			s.Errorf("%s returned %v, want ErrInvalid", what, err)
		}
	}
	s.unchanged(p, func() {
		for what, spoil := range map[string]func(c *driver.CompleteParams){
			"no state":               func(c *driver.CompleteParams) { c.To = 0 },
			"no outcome":             func(c *driver.CompleteParams) { c.Outcome = nil },
			"an uncertain outcome":   func(c *driver.CompleteParams) { c.To = driver.StateUncertain },
			"no retention":           func(c *driver.CompleteParams) { c.Retention = 0 },
			"a tombstone below zero": func(c *driver.CompleteParams) { c.Tombstone = -1 },
			"no format":              func(c *driver.CompleteParams) { c.Format = 0 },
		} {
			c := completion(p)
			spoil(&c)
			_, err := s.d.Complete(s.ctx, c)
			invalid("completing with "+what, err)
		}
		for _, d := range []time.Duration{0, -time.Second} {
			_, err := s.tryRenew(p, d)
			invalid("renewing for "+d.String(), err)
		}
		_, err := s.d.Release(s.ctx, driver.ReleaseParams{Key: p.Key, Token: p.Token, Keep: -1})
		invalid("releasing with a keep below zero", err)
	})
}
