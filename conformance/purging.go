package conformance

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/idem-go/idem/driver"
)

var purgingCases = []testCase{
	{
		"purging/leaves-what-is-kept",
		"Purge deletes neither live claims nor uncertain, completed, expired or released records before their time.",
		needs{leasesOrGuards, purger}, purgeLeavesWhatIsKept,
	},
	{
		"purging/spares-fence-memory",
		"Purge deletes no record earlier than FenceMemory after its last transition.",
		needs{leases, purger, freeTime}, purgeSparesFenceMemory,
	},
	{
		"purging/deletes-what-is-over",
		"Purge deletes, in bounded steps, what is past everything it was kept for, and then says that nothing is left.",
		needs{leasesOrGuards, purger, freeTime}, purgeDeletesWhatIsOver,
	},
	{
		"purging/races-with-claims",
		"Where claims and purges race for a key at the end of its record, exactly one claim is granted and its record stays.",
		needs{leasesOrGuards, purger}, purgeRacesWithClaims,
	},
	{
		"purging/limit-is-above-zero",
		"Purge with a limit below 1 is ErrInvalid.",
		needs{purger}, purgeLimitIsChecked,
	},
}

func (s *suite) purge(limit int) int {
	p, _ := driver.As[driver.Purger](s.d)
	res, err := p.Purge(s.ctx, driver.PurgeParams{Limit: limit})
	if err != nil {
		s.Fatalf("purging: %v", err)
	}
	if res.Purged < 0 || res.Purged > limit {
		s.Errorf("%d records were purged with a limit of %d", res.Purged, limit)
	}
	return res.Purged
}

func purgeLeavesWhatIsKept(s *suite) {
	live, done, stub := s.caller(), s.caller(), s.caller()
	done.Key, stub.Key = key("done"), key("stub")
	s.grant(live)
	s.grant(done)
	s.complete(completion(done))
	gen := s.grant(stub).Generation
	s.release(stub)
	var lapsed driver.ClaimParams
	if leases.met(s) {
		lapsed = lease(time.Millisecond)
		lapsed.Key = key("lapsed")
		s.grant(lapsed)
	}
	var doubtful driver.ClaimParams
	if guards.met(s) {
		doubtful = guard(time.Millisecond)
		doubtful.Key = key("doubtful")
		s.grant(doubtful)
	}
	s.pass(time.Millisecond)
	s.purge(100)
	s.expect(driver.DecisionInFlight, again(live))
	s.complete(completion(live))
	s.expect(driver.DecisionCompleted, again(done))
	if res := s.grant(again(stub)); res.Generation != gen || res.Attempt != 2 {
		s.Errorf("the released key's generation is %d, attempt %d; want %d, 2", res.Generation, res.Attempt, gen)
	}
	if leases.met(s) && !s.grant(again(lapsed)).TookOver {
		s.Errorf("the lapsed claim was not there to be taken over")
	}
	if guards.met(s) {
		s.expect(driver.DecisionUncertain, again(doubtful))
	}
}

func purgeSparesFenceMemory(s *suite) {
	p := lease(long)
	s.grant(p)
	s.pass(p.Lease)
	s.advance(driver.FenceMemory - time.Second)
	s.purge(100)
	if res := s.grant(again(p)); !res.TookOver || res.Attempt != 2 {
		s.Errorf("TookOver %v, attempt %d: the lapsed claim was not there to be taken over", res.TookOver, res.Attempt)
	}
}

func purgeDeletesWhatIsOver(s *suite) {
	const n = 7
	for i := range n {
		p := s.caller()
		p.Key = key(fmt.Sprint("over", i))
		s.grant(p)
		s.complete(completion(p))
	}
	keep := s.caller()
	s.grant(keep)
	c := completion(keep)
	c.Retention = driver.RetainForever
	s.complete(c)
	s.pass(long + driver.FenceMemory)

	var purged int
	for {
		k := s.purge(3)
		purged += k
		if k < 3 {
			break
		}
	}
	if purged > n || purged == 0 {
		s.Errorf("%d records were purged, want at most %d", purged, n)
	}
	if k := s.purge(100); k != 0 {
		s.Errorf("%d records were purged after Purge had said that nothing is left", k)
	}
	s.expect(driver.DecisionCompleted, again(keep))
	for i := range n {
		p := s.caller()
		p.Key = key(fmt.Sprint("over", i))
		if res := s.grant(p); res.Attempt != 1 {
			s.Errorf("attempt %d of a purged key", res.Attempt)
		}
	}
}

func purgeRacesWithClaims(s *suite) {
	handles := s.handles(4)
	for round := range 5 {
		p := s.caller()
		p.Key = key(fmt.Sprint("round", round))
		s.grant(p)
		c := completion(p)
		c.Retention = time.Millisecond
		s.complete(c)
		s.pass(c.Retention)
		if s.h.timeIsFree() {
			s.pass(driver.FenceMemory)
		}
		var granted atomic.Int32
		var mu sync.Mutex
		var winner driver.ClaimParams
		s.parallel(16, func(i int) {
			if i%4 == 3 {
				s.purge(10)
				return
			}
			q := again(p)
			if s.tryOn(handles[i%len(handles)], q).Decision == driver.DecisionClaimed {
				granted.Add(1)
				mu.Lock()
				winner = q
				mu.Unlock()
			}
		})
		if n := granted.Load(); n != 1 {
			s.Fatalf("%d claims were granted, want 1", n)
		}
		s.complete(completion(winner))
	}
}

func purgeLimitIsChecked(s *suite) {
	p, _ := driver.As[driver.Purger](s.d)
	for _, limit := range []int{0, -1} {
		if _, err := p.Purge(s.ctx, driver.PurgeParams{Limit: limit}); !errors.Is(err, driver.ErrInvalid) {
			s.Errorf("Purge with a limit of %d returned %v, want ErrInvalid", limit, err)
		}
	}
}
