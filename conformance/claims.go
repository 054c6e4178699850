package conformance

import (
	"bytes"
	"errors"
	"strings"
	"time"

	"github.com/idem-go/idem/driver"
)

var claimCases = []testCase{
	{
		"claims/first-claim-is-granted",
		"The claim of a key without a record is granted: attempt 1 of a new generation, whose number is the fence.",
		needs{leasesOrGuards}, firstClaimIsGranted,
	},
	{
		"claims/duplicate-is-in-flight",
		"While a claim is live, any other is DecisionInFlight with what is left of the lease and the stored fingerprint, and changes nothing.",
		needs{leasesOrGuards}, duplicateIsInFlight,
	},
	{
		"claims/own-token-is-recognised",
		"A claim sent again with its own token is granted as its own, with the same fence, and prolongs nothing.",
		needs{leasesOrGuards}, ownTokenIsRecognised,
	},
	{
		"claims/own-token-is-recognised-on-another-handle",
		"A claim sent again with its own token is recognised by every handle of the store.",
		needs{leasesOrGuards}, ownTokenIsRecognisedElsewhere,
	},
	{
		"claims/completed-key-is-replayed",
		"The claim of a completed key is DecisionCompleted with the outcome, the stored fingerprint and the time of completion, and changes nothing.",
		needs{leasesOrGuards}, completedKeyIsReplayed,
	},
	{
		"claims/completed-key-knows-its-owner",
		"The claim of a completed key says Own only to the token that completed it.",
		needs{leasesOrGuards}, completedKeyKnowsItsOwner,
	},
	{
		"claims/loser-replays-when-the-winner-completes",
		"A claim that was in flight is DecisionCompleted as soon as the winner has completed.",
		needs{leasesOrGuards}, loserReplays,
	},
	{
		"claims/released-key-runs-again",
		"The claim of a released key is granted: the same generation, the next attempt, a higher fence, no takeover, and no fingerprint from before.",
		needs{leasesOrGuards}, releasedKeyRunsAgain,
	},
	{
		"claims/late-claim-of-a-released-token-is-lost",
		"A claim that arrives after its own release is ErrLost and takes nothing.",
		needs{leasesOrGuards}, lateClaimIsLost,
	},
	{
		"claims/broken-parameters-are-refused",
		"A claim whose parameters break the contract is ErrInvalid and stores nothing.",
		needs{leasesOrGuards}, brokenParametersAreRefused,
	},
}

func firstClaimIsGranted(s *suite) {
	p := s.caller()
	p.Fingerprint = fingerprint("mine")
	res := s.grant(p)
	if res.Own || res.TookOver || res.Joined {
		s.Errorf("Own, TookOver, Joined are %v, %v, %v, want none", res.Own, res.TookOver, res.Joined)
	}
	if res.Fence <= 0 || res.Generation != res.Fence || res.Attempt != 1 {
		s.Errorf("fence %d, generation %d, attempt %d; want a generation that is the fence, attempt 1",
			res.Fence, res.Generation, res.Attempt)
	}
	if len(res.Fingerprint) != 0 || len(res.Outcome) != 0 {
		s.Errorf("there is something stored before the first claim")
	}
	if res.OnLapse != p.OnLapse || res.Format != p.Format || res.ClaimedAt.IsZero() {
		s.Errorf("the granted record is %v, format %d, claimed at %v", res.OnLapse, res.Format, res.ClaimedAt)
	}
	s.within("LeaseLeft", res.LeaseLeft, p.Lease)
}

func duplicateIsInFlight(s *suite) {
	p := s.caller()
	p.Fingerprint = fingerprint("mine")
	won := s.grant(p)
	for _, other := range []string{"", "mine", "other"} {
		dup := again(p)
		dup.Fingerprint = nil
		if other != "" {
			dup.Fingerprint = fingerprint(other)
		}
		dup.Lease = 10 * long
		res := s.expect(driver.DecisionInFlight, dup)
		s.within("LeaseLeft", res.LeaseLeft, p.Lease)
		s.sameTime("ClaimedAt", res.ClaimedAt, won.ClaimedAt)
		if !bytes.Equal(res.Fingerprint, p.Fingerprint) {
			s.Errorf("the stored fingerprint is %q, want %q", res.Fingerprint, p.Fingerprint)
		}
		if res.Own || res.TookOver || len(res.Outcome) != 0 {
			s.Errorf("the answer of a key in flight is %+v", res)
		}
	}
	s.complete(completion(p))
}

func ownTokenIsRecognised(s *suite) {
	p := s.caller()
	p.Fingerprint = fingerprint("mine")
	won := s.grant(p)
	longer := p
	longer.Lease = 10 * long
	for range 2 {
		res := s.grant(longer)
		if !res.Own {
			s.Errorf("the claim does not know itself")
		}
		if res.Fence != won.Fence || res.Generation != won.Generation || res.Attempt != won.Attempt {
			s.Errorf("fence, generation, attempt are %d, %d, %d; the first answer was %d, %d, %d",
				res.Fence, res.Generation, res.Attempt, won.Fence, won.Generation, won.Attempt)
		}
		s.within("LeaseLeft", res.LeaseLeft, p.Lease)
	}
	s.complete(completion(p))
}

func ownTokenIsRecognisedElsewhere(s *suite) {
	p := s.caller()
	won := s.grant(p)
	res := s.tryOn(s.peer(), p)
	if res.Decision != driver.DecisionClaimed || !res.Own || res.Fence != won.Fence {
		s.Errorf("the other handle answers %v, Own %v, fence %d; want Claimed, Own, fence %d",
			res.Decision, res.Own, res.Fence, won.Fence)
	}
}

func completedKeyIsReplayed(s *suite) {
	p := s.caller()
	p.Fingerprint = fingerprint("mine")
	won := s.grant(p)
	done := s.complete(completion(p))
	s.within("LifeLeft of the completion", done.LifeLeft, long)
	for _, other := range []string{"mine", "other"} {
		dup := again(p)
		dup.Fingerprint = fingerprint(other)
		s.unchanged(p, func() {
			res := s.expect(driver.DecisionCompleted, dup)
			if !bytes.Equal(res.Outcome, outcome) || !bytes.Equal(res.Fingerprint, p.Fingerprint) {
				s.Errorf("outcome %q, fingerprint %q; want %q, %q", res.Outcome, res.Fingerprint, outcome, p.Fingerprint)
			}
			if res.Fence != won.Fence || res.Generation != won.Generation || res.Attempt != won.Attempt {
				s.Errorf("fence, generation, attempt are %d, %d, %d; the claim's were %d, %d, %d",
					res.Fence, res.Generation, res.Attempt, won.Fence, won.Generation, won.Attempt)
			}
			s.sameTime("CompletedAt", res.CompletedAt, done.CompletedAt)
			s.within("LifeLeft", res.LifeLeft, long)
		})
	}
}

func completedKeyKnowsItsOwner(s *suite) {
	p := s.caller()
	s.grant(p)
	s.complete(completion(p))
	if res := s.expect(driver.DecisionCompleted, p); !res.Own {
		s.Errorf("the owner's claim is not Own")
	}
	if res := s.expect(driver.DecisionCompleted, again(p)); res.Own {
		s.Errorf("a stranger's claim is Own")
	}
}

func loserReplays(s *suite) {
	p := s.caller()
	s.grant(p)
	loser := again(p)
	s.expect(driver.DecisionInFlight, loser)
	s.complete(completion(p))
	for _, d := range s.handles(2) {
		res := s.tryOn(d, loser)
		if res.Decision != driver.DecisionCompleted || res.Own || !bytes.Equal(res.Outcome, outcome) {
			s.Errorf("the loser's next claim is %v, Own %v, outcome %q; want Completed, not Own, %q",
				res.Decision, res.Own, res.Outcome, outcome)
		}
	}
}

func releasedKeyRunsAgain(s *suite) {
	p := s.caller()
	p.Fingerprint = fingerprint("mine")
	before := s.grant(p)
	for attempt := 2; attempt <= 3; attempt++ {
		s.release(p)
		p = again(p)
		p.Fingerprint = nil
		res := s.grant(p)
		if res.Generation != before.Generation || res.Attempt != attempt || res.Fence <= before.Fence {
			s.Errorf("generation %d, attempt %d, fence %d; want %d, %d, above %d",
				res.Generation, res.Attempt, res.Fence, before.Generation, attempt, before.Fence)
		}
		if res.TookOver || res.Own {
			s.Errorf("TookOver, Own are %v, %v after a release", res.TookOver, res.Own)
		}
		if dup := s.expect(driver.DecisionInFlight, again(p)); len(dup.Fingerprint) != 0 {
			s.Errorf("the fingerprint %q of the released claim is still there", dup.Fingerprint)
		}
		before.Fence = res.Fence
	}
}

func lateClaimIsLost(s *suite) {
	p := s.caller()
	s.grant(p)
	s.release(p)
	if res, err := s.d.Claim(s.ctx, p); !errors.Is(err, driver.ErrLost) {
		s.Errorf("the late claim returned %v, %v; want ErrLost", res.Decision, err)
	}
	s.grant(again(p))
}

func brokenParametersAreRefused(s *suite) {
	tooLong := strings.Repeat("k", driver.MaxKeyPart+1)
	for what, spoil := range map[string]func(p *driver.ClaimParams){
		"no lease":        func(p *driver.ClaimParams) { p.Lease = 0 },
		"a lease of -1 s": func(p *driver.ClaimParams) { p.Lease = -time.Second },
		"no OnLapse":      func(p *driver.ClaimParams) { p.OnLapse = 0 },
		"no token":        func(p *driver.ClaimParams) { p.Token = driver.Token{} },
		"no format":       func(p *driver.ClaimParams) { p.Format = 0 },
		"no guarantee":    func(p *driver.ClaimParams) { p.Guarantee = 0 },
		"no scope":        func(p *driver.ClaimParams) { p.Key.Scope = "" },
		"no ID":           func(p *driver.ClaimParams) { p.Key.ID = "" },
		"a long ID":       func(p *driver.ClaimParams) { p.Key.ID = tooLong },
		"uncertain without a retention": func(p *driver.ClaimParams) {
			p.OnLapse, p.Retention = driver.Uncertain, 0
		},
	} {
		p := s.caller()
		spoil(&p)
		if _, err := s.d.Claim(s.ctx, p); !errors.Is(err, driver.ErrInvalid) {
			s.Errorf("a claim with %s returned %v, want ErrInvalid", what, err)
		}
	}
	s.grant(s.caller())
}
