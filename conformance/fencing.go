package conformance

import (
	"time"

	"github.com/idem-go/idem/driver"
)

var fencingCases = []testCase{
	{
		"fencing/first-fence-is-the-clock",
		"The first fence of a key is the backend's clock in microseconds, so that fences rise also after the store lost its data.",
		needs{leasesOrGuards}, firstFenceIsTheClock,
	},
	{
		"fencing/rises-however-a-claim-ends",
		"Each claim of a key has a higher fence than all before, whether they were released, taken over or completed.",
		needs{leases}, fenceRises,
	},
	{
		"fencing/rises-after-a-forgotten-record",
		"The claim after ResolveForget has a higher fence than all before.",
		needs{leasesOrGuards, resolver}, fenceRisesAfterForget,
	},
	{
		"fencing/rises-after-a-purge",
		"The claim of a key whose record was purged has a higher fence than all before.",
		needs{leasesOrGuards, purger, freeTime}, fenceRisesAfterPurge,
	},
	{
		"fencing/generation-outlives-attempts",
		"Releases and takeovers go on with a generation, the end of a stored outcome starts a new one at attempt 1.",
		needs{leases}, generationOutlivesAttempts,
	},
}

func firstFenceIsTheClock(s *suite) {
	res := s.grant(s.caller())
	if d := time.UnixMicro(res.Fence).Sub(res.ClaimedAt).Abs(); d > time.Second {
		s.Errorf("the fence %d is %v away from %v, when the claim was granted", res.Fence, d, res.ClaimedAt)
	}
}

// rises wants every claim to have a higher fence than the one before.
func (s *suite) rises() func(after string, res driver.ClaimResult) {
	var last int64
	return func(after string, res driver.ClaimResult) {
		if res.Fence <= last {
			s.Errorf("after %s the fence is %d, it was %d", after, res.Fence, last)
		}
		last = res.Fence
	}
}

func fenceRises(s *suite) {
	rises := s.rises()
	p := lease(time.Millisecond)
	rises("nothing", s.grant(p))
	for range 3 {
		s.release(p)
		p = again(p)
		rises("a release", s.grant(p))
		s.pass(p.Lease)
		p = again(p)
		rises("a lapse", s.grant(p))
		c := completion(p)
		c.Retention = time.Millisecond
		s.complete(c)
		s.pass(c.Retention)
		p = again(p)
		rises("a completion", s.grant(p))
	}
}

func fenceRisesAfterForget(s *suite) {
	rises := s.rises()
	p := s.caller()
	for range 5 { // in quick succession, so that the clock alone may not do
		res := s.grant(p)
		rises("a forget", res)
		s.complete(completion(p))
		s.resolved(p, res.Fence, driver.ResolveForget)
		p = again(p)
	}
}

func fenceRisesAfterPurge(s *suite) {
	rises := s.rises()
	p := s.caller()
	for range 2 {
		rises("a purge", s.grant(p))
		s.complete(completion(p))
		s.pass(long + driver.FenceMemory)
		s.purge(100)
		p = again(p)
	}
}

func generationOutlivesAttempts(s *suite) {
	p := lease(time.Millisecond)
	first := s.grant(p)
	s.pass(p.Lease)
	p = again(p)
	s.grant(p)
	s.release(p)
	p = again(p)
	if res := s.grant(p); res.Generation != first.Generation || res.Attempt != 3 {
		s.Errorf("after a lapse and a release: generation %d, attempt %d; want %d, 3",
			res.Generation, res.Attempt, first.Generation)
	}
	c := completion(p)
	c.Retention = time.Millisecond
	s.complete(c)
	s.pass(c.Retention)
	res := s.grant(again(p))
	if res.Generation != res.Fence || res.Generation <= first.Generation || res.Attempt != 1 || res.TookOver {
		s.Errorf("after the outcome's end: generation %d, fence %d, attempt %d, TookOver %v; want a new generation, attempt 1",
			res.Generation, res.Fence, res.Attempt, res.TookOver)
	}
	if len(res.Outcome) != 0 {
		s.Errorf("the outcome %q of the generation before is still there", res.Outcome)
	}
}
