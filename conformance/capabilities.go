package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/idem-go/idem/driver"
)

var capabilityCases = []testCase{
	{
		"capabilities/are-complete",
		"Capabilities always returns the same answer, with the contract's version, a name, at least one guarantee and a clock finer than a second.",
		nil, capabilitiesAreComplete,
	},
	{
		"capabilities/shared-drivers-have-peers",
		"A driver that declares Shared is tested with a second handle, which sees what the first one claims.",
		needs{leasesOrGuards, {"Shared", func(s *suite) bool { return s.caps.Shared }}}, sharedDriversHavePeers,
	},
	{
		"capabilities/exactly-once-has-a-transactor",
		"A driver that declares ExactlyOnce has a Transactor, and its harness can write and count effects.",
		needs{inboxes}, exactlyOnceHasATransactor,
	},
	{
		"capabilities/transact-is-unsupported-unless-declared",
		"A driver that does not declare ExactlyOnce has no Transactor, or one that returns errors.ErrUnsupported without calling fn.",
		needs{noInboxes}, transactIsUnsupported,
	},
	{
		"capabilities/no-tombstones-unless-declared",
		"Without FeatureTombstone a record past its retention is free: no claim is answered with DecisionExpired.",
		needs{leasesOrGuards, not(tombstones)}, noTombstones,
	},
	{
		"capabilities/no-reconciling-unless-declared",
		"Without FeatureReconcile no claim takes an uncertain record.",
		needs{guards, not(reconciling)}, noReconciling,
	},
}

func capabilitiesAreComplete(s *suite) {
	c := s.caps
	if again := s.d.Capabilities(); again != c {
		s.Errorf("Capabilities returned %+v, then %+v", c, again)
	}
	if c.Contract != driver.ContractVersion {
		s.Errorf("Contract is %d, want %d", c.Contract, driver.ContractVersion)
	}
	if c.Name == "" {
		s.Errorf("Name is empty")
	}
	known := driver.GuaranteeSet(driver.AtLeastOnce, driver.AtMostOnce, driver.ExactlyOnce)
	if c.Guarantees == 0 || c.Guarantees&^known != 0 {
		s.Errorf("Guarantees are %b, want at least one of %b", c.Guarantees, known)
	}
	if c.ClockPrecision <= 0 || c.ClockPrecision >= time.Second {
		s.Errorf("ClockPrecision is %v, want more than 0 and less than a second", c.ClockPrecision)
	}
	if c.MaxOutcome < 0 {
		s.Errorf("MaxOutcome is %d", c.MaxOutcome)
	}
}

func sharedDriversHavePeers(s *suite) {
	if s.h.Peer == nil {
		s.Fatal("the driver declares Shared, so the harness needs a Peer")
	}
	p := s.caller()
	s.grant(p)
	if d := s.tryOn(s.peer(), again(p)).Decision; d != driver.DecisionInFlight {
		s.Errorf("the peer's claim is %v, want InFlight", d)
	}
}

func exactlyOnceHasATransactor(s *suite) {
	if _, ok := driver.As[driver.Transactor](s.d); !ok {
		s.Errorf("the driver has no Transactor")
	}
	if s.h.Effect == nil {
		s.Errorf("the harness has no Effect and Effects")
	}
}

func transactIsUnsupported(s *suite) {
	tx, ok := driver.As[driver.Transactor](s.d)
	if !ok {
		return
	}
	p := lease(long)
	p.Guarantee = driver.ExactlyOnce
	_, err := tx.Transact(s.ctx, driver.TransactParams{Claim: p},
		func(context.Context, driver.ClaimResult) (driver.CompleteParams, error) {
			s.Errorf("fn was called")
			return completion(p), nil
		})
	if !errors.Is(err, errors.ErrUnsupported) {
		s.Errorf("Transact returned %v, want errors.ErrUnsupported", err)
	}
}

func noTombstones(s *suite) {
	p := s.caller()
	s.grant(p)
	c := completion(p)
	c.Retention, c.Tombstone = s.short(), long
	s.complete(c)
	s.pass(c.Retention)
	s.grant(again(p))
}

func noReconciling(s *suite) {
	p := guard(long)
	over := s.grant(p).Fence
	s.complete(doubt(p))
	reconcile := again(p)
	reconcile.Over = over
	s.expect(driver.DecisionUncertain, reconcile)
}
