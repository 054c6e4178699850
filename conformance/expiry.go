package conformance

import (
	"bytes"
	"time"

	"github.com/idem-go/idem/driver"
)

var expiryCases = []testCase{
	{
		"expiry/retention-ends-on-time",
		"An outcome is replayed until its retention is over, counted from the completion; then the key runs again.",
		needs{leasesOrGuards}, retentionEndsOnTime,
	},
	{
		"expiry/retention-forever-never-ends",
		"An outcome with RetainForever says so, and is replayed however late.",
		needs{leasesOrGuards}, retainedForever,
	},
	{
		"expiry/retention-forever-outlives-decades",
		"An outcome with RetainForever is replayed after decades and never purged.",
		needs{leasesOrGuards, freeTime}, retainedForDecades,
	},
	{
		"expiry/tombstone-follows-the-retention",
		"Past its retention a key with a tombstone is DecisionExpired without the outcome until the tombstone is over; then it runs again.",
		needs{leasesOrGuards, tombstones}, tombstoneFollows,
	},
	{
		"expiry/expired-record-is-unchanged",
		"A claim of an expired key changes nothing, and the owner's Renew and Release are ErrLost.",
		needs{leasesOrGuards, tombstones}, expiredIsUnchanged,
	},
	{
		"expiry/stub-is-kept-for-fence-memory",
		"A released key goes on with its generation for FenceMemory however short its keep, and its fence rises afterwards too.",
		needs{leasesOrGuards, freeTime}, stubIsKept,
	},
}

func retentionEndsOnTime(s *suite) {
	p := s.caller()
	s.grant(p)
	s.advance(50 * time.Millisecond)
	c := completion(p)
	c.Retention = 300 * time.Millisecond
	sent := s.now()
	s.within("LifeLeft of the completion", s.complete(c).LifeLeft, c.Retention)
	s.endsAfter(c.Retention, sent, driver.DecisionCompleted, func() driver.ClaimResult {
		res := s.try(again(p))
		if res.Decision == driver.DecisionCompleted {
			s.within("LifeLeft", res.LifeLeft, c.Retention)
		} else if len(res.Outcome) != 0 || res.TookOver || res.Attempt != 1 {
			s.Errorf("the claim after the retention is %+v, want attempt 1 without an outcome", res)
		}
		return res
	})
}

func retainedForever(s *suite) {
	p := s.caller()
	s.grant(p)
	c := completion(p)
	c.Retention, c.Tombstone = driver.RetainForever, 0
	if left := s.complete(c).LifeLeft; left != driver.RetainForever {
		s.Errorf("LifeLeft of the completion is %v, want RetainForever", left)
	}
	s.pass(s.short())
	if left := s.expect(driver.DecisionCompleted, again(p)).LifeLeft; left != driver.RetainForever {
		s.Errorf("LifeLeft is %v, want RetainForever", left)
	}
}

func retainedForDecades(s *suite) {
	p := s.caller()
	s.grant(p)
	c := completion(p)
	c.Retention = driver.RetainForever
	s.complete(c)
	for range 3 {
		s.pass(10 * 365 * 24 * time.Hour)
		if _, ok := driver.As[driver.Purger](s.d); ok {
			s.purge(100)
		}
		if res := s.expect(driver.DecisionCompleted, again(p)); !bytes.Equal(res.Outcome, outcome) {
			s.Errorf("the outcome is %q, want %q", res.Outcome, outcome)
		}
	}
}

// expired returns an owner whose outcome is past its retention, and before the
// end of its tombstone.
func (s *suite) expired(tombstone time.Duration) driver.ClaimParams {
	p := s.caller()
	s.grant(p)
	c := completion(p)
	c.Retention, c.Tombstone = time.Millisecond, tombstone
	s.complete(c)
	s.pass(c.Retention)
	return p
}

func tombstoneFollows(s *suite) {
	sent := s.now()
	tombstone := 300 * time.Millisecond
	p := s.expired(tombstone)
	s.endsAfter(time.Millisecond+tombstone, sent, driver.DecisionExpired, func() driver.ClaimResult {
		res := s.try(again(p))
		if res.Decision == driver.DecisionExpired {
			s.within("LifeLeft", res.LifeLeft, tombstone)
			if len(res.Outcome) != 0 || res.CompletedAt.IsZero() {
				s.Errorf("outcome %q, completed at %v; want none, and the time", res.Outcome, res.CompletedAt)
			}
		}
		return res
	})
}

func expiredIsUnchanged(s *suite) {
	p := s.expired(long)
	s.unchanged(p, func() {
		s.expect(driver.DecisionExpired, again(p))
		s.lost(p, "Renew", "Release")
		if _, ok := driver.As[driver.Purger](s.d); ok {
			s.purge(100)
		}
	})
}

func stubIsKept(s *suite) {
	p := s.caller()
	won := s.grant(p)
	if _, err := s.d.Release(s.ctx, driver.ReleaseParams{Key: p.Key, Token: p.Token}); err != nil {
		s.Fatalf("releasing: %v", err)
	}
	s.advance(driver.FenceMemory - time.Second)
	p = again(p)
	res := s.grant(p)
	if res.Generation != won.Generation || res.Attempt != 2 || res.Fence <= won.Fence {
		s.Errorf("generation %d, attempt %d, fence %d; want %d, 2, above %d",
			res.Generation, res.Attempt, res.Fence, won.Generation, won.Fence)
	}
	s.release(p)
	s.pass(2 * driver.FenceMemory)
	if late := s.grant(again(p)); late.Attempt != 1 || late.Generation != late.Fence || late.Fence <= res.Fence {
		s.Errorf("long after the release: generation %d, attempt %d, fence %d; want a new generation above %d",
			late.Generation, late.Attempt, late.Fence, res.Fence)
	}
}
