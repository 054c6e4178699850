package idemredis_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/idem-go/idem/driver"
)

// life is how long the server keeps a key's record; 0: for ever.
func (b *bundle) life(k driver.Key) time.Duration {
	b.t.Helper()
	ms, err := do(b.t, b.client, "PTTL", b.physical(k)).ToInt64()
	must(b.t, err)
	if ms == -2 {
		b.t.Fatalf("there is no record of %v", k)
	}
	return max(0, time.Duration(ms)*time.Millisecond)
}

// keeps wants the server to drop the record after d.
func (b *bundle) keeps(what string, k driver.Key, d time.Duration) {
	b.t.Helper()
	if got := b.life(k); d-got > 10*time.Second || got > d+time.Millisecond { // rounded up
		b.t.Errorf("%s is kept for %v, want %v", what, got, d)
	}
}

// Nothing is left behind but what is to be kept for ever (R5, R7).
func TestTheServerDropsWhatIsOver(t *testing.T) {
	t.Parallel()
	const memory = driver.FenceMemory
	s := setup(t)
	complete := func(p driver.ClaimParams, to driver.State, retention, tombstone time.Duration) {
		t.Helper()
		s.mustClaim(p, driver.DecisionClaimed)
		c := completionOf(p, "x")
		c.To, c.Retention, c.Tombstone = to, retention, tombstone
		if to == driver.StateUncertain {
			c.Outcome = nil
		}
		_, err := s.Complete(t.Context(), c)
		must(t, err)
	}

	p := claimOf("live lease")
	s.mustClaim(p, driver.DecisionClaimed)
	s.keeps("a lease of a minute", p.Key, time.Minute+memory)
	_, err := s.Renew(t.Context(), driver.RenewParams{Key: p.Key, Token: p.Token, Lease: time.Hour})
	must(t, err)
	s.keeps("a renewed lease", p.Key, time.Hour+memory)

	p = guardOf("live guard")
	s.mustClaim(p, driver.DecisionClaimed)
	s.keeps("a guard", p.Key, 0)
	p = guardOf("guard with an end")
	p.Retention, p.Tombstone = time.Hour, time.Minute
	s.mustClaim(p, driver.DecisionClaimed)
	s.keeps("a guard with a retention", p.Key, time.Minute+time.Hour+time.Minute)

	p = claimOf("completed")
	complete(p, driver.StateCompleted, time.Hour, 0)
	s.keeps("an outcome", p.Key, time.Hour)
	p = claimOf("short")
	complete(p, driver.StateCompleted, time.Second, time.Second)
	s.keeps("a short outcome", p.Key, memory)
	p = claimOf("tombstone")
	complete(p, driver.StateCompleted, time.Second, time.Hour)
	s.keeps("a tombstone", p.Key, time.Second+time.Hour)
	for _, forever := range []driver.CompleteParams{
		{Retention: driver.RetainForever}, {Retention: time.Second, Tombstone: driver.RetainForever},
	} {
		p = claimOf("for ever")
		p.Key.ID += forever.Tombstone.String()
		complete(p, driver.StateCompleted, forever.Retention, forever.Tombstone)
		s.keeps("what is kept for ever", p.Key, 0)
	}
	p = guardOf("uncertain")
	complete(p, driver.StateUncertain, driver.RetainForever, 0)
	s.keeps("an uncertain guard", p.Key, 0)

	for _, keep := range []time.Duration{0, time.Hour} {
		p = guardOf("released after " + keep.String())
		s.mustClaim(p, driver.DecisionClaimed)
		_, err = s.Release(t.Context(), driver.ReleaseParams{Key: p.Key, Token: p.Token, Keep: keep})
		must(t, err)
		s.keeps("a stub", p.Key, max(keep, memory))
	}
	p = guardOf("forgotten")
	won := s.mustClaim(p, driver.DecisionClaimed)
	s.mustComplete(p, "x")
	res, err := s.Resolve(t.Context(), driver.ResolveParams{Key: p.Key, Fence: won.Fence, Action: driver.ResolveForget, Format: 1})
	must(t, err)
	if !res.Applied {
		t.Fatalf("not forgotten: %+v", res)
	}
	s.keeps("a forgotten record", p.Key, memory)
}

// The record is gone to the millisecond, however long the server keeps its key (R5).
func TestARetentionEndsToTheMillisecond(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p := claimOf("key")
	s.mustClaim(p, driver.DecisionClaimed)
	c := completionOf(p, "x")
	c.Retention = 150 * time.Millisecond
	done, err := s.Complete(t.Context(), c)
	must(t, err)
	for {
		res, err := s.Claim(t.Context(), claimOf("key"))
		must(t, err)
		age := res.DecidedAt.Sub(done.CompletedAt)
		if res.Decision == driver.DecisionClaimed {
			if age < c.Retention || res.Fence <= done.CompletedAt.UnixMicro() {
				t.Errorf("claimed after %v with fence %d", age, res.Fence)
			}
			return
		}
		if age >= c.Retention || res.LifeLeft != c.Retention-age {
			t.Fatalf("after %v: %v with %v left", age, res.Decision, res.LifeLeft)
		}
	}
}

// Durations that Lua cannot count exactly are for ever, those below its clock's tick are one.
func TestExtremeDurations(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p := claimOf("long")
	p.Lease = driver.RetainForever - 1
	s.mustClaim(p, driver.DecisionClaimed)
	if res := s.mustClaim(claimOf("long"), driver.DecisionInFlight); res.LeaseLeft != driver.RetainForever {
		t.Errorf("a lease of three centuries has %v left", res.LeaseLeft)
	}
	c := completionOf(p, "x")
	c.Retention, c.Tombstone = driver.RetainForever-1, driver.RetainForever-1
	_, err := s.Complete(t.Context(), c)
	must(t, err)
	if res := s.mustClaim(claimOf("long"), driver.DecisionCompleted); res.LifeLeft != driver.RetainForever {
		t.Errorf("a retention of three centuries has %v left", res.LifeLeft)
	}
	s.keeps("a retention of three centuries", p.Key, 0)

	p = claimOf("short")
	p.Lease = 1
	if res := s.mustClaim(p, driver.DecisionClaimed); res.LeaseLeft != time.Microsecond {
		t.Errorf("a lease of 1 ns is %v", res.LeaseLeft)
	}
}

// age makes a record as if all of it had happened earlier.
func (b *bundle) age(k driver.Key, d time.Duration) {
	b.t.Helper()
	record := b.read(k)
	for _, at := range []int{36, 44, 52, 60} { // fence, generation, claim, end
		n := binary.BigEndian.Uint64(record[at:])
		binary.BigEndian.PutUint64(record[at:], n-uint64(d.Microseconds()))
	}
	b.write(k, record)
}

func TestALeaseThatLapsedLongAgoIsAnybodys(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p, other := claimOf("key"), claimOf("key")
	p.Fingerprint, other.Fingerprint = []byte("v1: mine"), []byte("v1: other")
	s.mustClaim(p, driver.DecisionClaimed)
	s.age(p.Key, p.Lease+driver.FenceMemory-time.Second)
	s.mustClaim(other, driver.DecisionInFlight)
	s.age(p.Key, time.Second)
	if res, err := s.Inspect(t.Context(), driver.InspectParams{Key: p.Key}); err != nil || res.Found {
		t.Errorf("a lease that is over for good is shown: %+v, %v", res, err)
	}
	if res := s.mustClaim(other, driver.DecisionClaimed); !res.TookOver || res.Attempt != 2 || string(res.Fingerprint) != "v1: mine" {
		t.Errorf("the claim is %+v, want a takeover", res)
	}
}

// A server whose clock is behind the one that served the key before.
func TestTheFenceRisesAlthoughTheClockSteppedBack(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p := claimOf("key")
	won := s.mustClaim(p, driver.DecisionClaimed)
	_, err := s.Release(t.Context(), driver.ReleaseParams{Key: p.Key, Token: p.Token})
	must(t, err)
	s.age(p.Key, -time.Minute)
	ahead := won.Fence + time.Minute.Microseconds()
	if res := s.mustClaim(claimOf("key"), driver.DecisionClaimed); res.Fence != ahead+1 || res.Generation != ahead {
		t.Errorf("fence %d, generation %d; want %d, %d", res.Fence, res.Generation, ahead+1, ahead)
	}
}
