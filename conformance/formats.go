package conformance

import (
	"errors"
	"time"

	"github.com/idem-go/idem/driver"
)

var formatCases = []testCase{
	{
		"formats/newer-record-is-left-alone",
		"A claim in an older format than the record's is ErrNewerFormat in every state, and changes nothing.",
		needs{leasesOrGuards}, newerRecordIsLeftAlone,
	},
	{
		"formats/older-record-is-served",
		"A record in an older format than the claim's is replayed, taken over or in flight as ever, and says its format.",
		needs{leasesOrGuards}, olderRecordIsServed,
	},
}

func newerRecordIsLeftAlone(s *suite) {
	for what, end := range map[string]func(p driver.ClaimParams){
		"live":      func(driver.ClaimParams) {},
		"completed": func(p driver.ClaimParams) { s.complete(completion(p)) },
		"uncertain": func(p driver.ClaimParams) { s.complete(doubt(p)) },
	} {
		p := s.caller()
		p.Key, p.Format = key(what), format+1
		s.grant(p)
		end(p)
		s.unchanged(p, func() { s.newer(what, p) })
	}
	stub := s.caller()
	stub.Key, stub.Format = key("released"), format+1
	gen := s.grant(stub).Generation
	s.release(stub)
	s.newer("released", stub)
	if res := s.grant(again(stub)); res.Generation != gen || res.Attempt != 2 {
		s.Errorf("released: generation %d, attempt %d; want %d, 2", res.Generation, res.Attempt, gen)
	}
	if leases.met(s) {
		p := lease(time.Millisecond)
		p.Key, p.Format = key("lapsed"), format+1
		s.grant(p)
		s.pass(p.Lease)
		s.newer("lapsed", p)
		s.renew(p, long) // the owner is still there
	}
}

// newer wants claims in an older format to be refused.
func (s *suite) newer(what string, p driver.ClaimParams) {
	for _, old := range []driver.ClaimParams{p, again(p)} { // the owner's token makes no difference
		old.Format = format
		if res, err := s.d.Claim(s.ctx, old); !errors.Is(err, driver.ErrNewerFormat) {
			s.Errorf("%s: the claim in an older format returned %v, %v; want ErrNewerFormat", what, res.Decision, err)
		}
	}
}

func olderRecordIsServed(s *suite) {
	p := s.caller()
	s.grant(p)
	next := again(p)
	next.Format = format + 1
	if res := s.expect(driver.DecisionInFlight, next); res.Format != format {
		s.Errorf("in flight the format is %d, want %d", res.Format, format)
	}
	s.complete(completion(p))
	if res := s.expect(driver.DecisionCompleted, next); res.Format != format {
		s.Errorf("after the completion the format is %d, want %d", res.Format, format)
	}
	if !leases.met(s) {
		return
	}
	p = lease(time.Millisecond)
	p.Key = key("lapsed")
	s.grant(p)
	s.pass(p.Lease)
	next = again(p)
	next.Format = format + 1
	if res := s.grant(next); !res.TookOver || res.Format != format+1 {
		s.Errorf("TookOver %v, format %d; want a takeover in format %d", res.TookOver, res.Format, format+1)
	}
	s.newer("taken over", next)
}
