package idemsql_test

import (
	"testing"
	"time"

	"github.com/idem-go/idem/driver"
)

func (b *bundle) inspect(id string) driver.Record {
	b.t.Helper()
	res, err := b.Inspect(b.t.Context(), driver.InspectParams{Key: key(id)})
	must(b.t, err)
	if !res.Found {
		b.t.Fatalf("there is no record of %q", id)
	}
	return res.Record
}

// Rule 4: max(stored + 1, the clock).
func TestTheFenceRisesAlthoughTheClockStepsBack(t *testing.T) {
	t.Parallel()
	s := setup(t)
	stepBack := func() (fence int64) { // by an hour, as what is stored sees it
		s.db.MustExec("UPDATE idem_records SET fence = fence + 3600000000")
		must(t, s.db.Get(&fence, "SELECT fence FROM idem_records"))
		return fence
	}
	p := claimOf("x")
	p.Lease = time.Millisecond
	s.mustClaim(p, driver.DecisionClaimed)
	time.Sleep(3 * time.Millisecond)
	before := stepBack()
	next := claimOf("x")
	if res := s.mustClaim(next, driver.DecisionClaimed); res.Fence != before+1 || res.Attempt != 2 {
		t.Errorf("a takeover of fence %d gets %+v", before, res)
	}
	c := completionOf(next, "x")
	c.Retention = time.Millisecond
	_, err := s.Complete(t.Context(), c)
	must(t, err)
	time.Sleep(3 * time.Millisecond)
	before = stepBack()
	if res := s.mustClaim(claimOf("x"), driver.DecisionClaimed); res.Fence != before+1 || res.Generation != res.Fence || res.Attempt != 1 {
		t.Errorf("a new generation after fence %d gets %+v", before, res)
	}
}

// Rule 7: a takeover without a fingerprint keeps the stored one, a stub drops it.
func TestAStubForgetsItsFingerprint(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p := claimOf("x")
	p.Fingerprint = []byte("v001request")
	s.mustClaim(p, driver.DecisionClaimed)
	_, err := s.Release(t.Context(), releaseOf(p))
	must(t, err)
	if rec := s.inspect("x"); len(rec.Fingerprint) != 0 || rec.State != driver.StateReleased {
		t.Errorf("the stub is %+v", rec)
	}
	s.mustClaim(claimOf("x"), driver.DecisionClaimed)
	if rec := s.inspect("x"); len(rec.Fingerprint) != 0 {
		t.Errorf("the next claim has the fingerprint of the one before: %+v", rec)
	}
}

// Rule 6: what is below the clock's unit rounds up, never down to nothing.
func TestAShortDurationRoundsUp(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p := claimOf("x")
	p.Lease = 500 * time.Microsecond
	if res := s.mustClaim(p, driver.DecisionClaimed); res.LeaseLeft != time.Millisecond {
		t.Errorf("%v left of a lease of %v", res.LeaseLeft, p.Lease)
	}
	c := completionOf(p, "x")
	c.Retention = 500 * time.Microsecond
	res, err := s.Complete(t.Context(), c)
	must(t, err)
	if res.LifeLeft != time.Millisecond {
		t.Errorf("%v left of a retention of %v", res.LifeLeft, c.Retention)
	}
}
