package conformance

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/idem-go/idem/driver"
)

var transactionCases = []testCase{
	{
		"transactions/commit-effect-and-outcome",
		"A granted transaction calls fn with its claim and commits the effect and the outcome together.",
		needs{inboxes}, transactCommits,
	},
	{
		"transactions/duplicate-replays",
		"A transaction of a completed key is DecisionCompleted with the outcome and does not call fn.",
		needs{inboxes}, transactReplays,
	},
	{
		"transactions/own-commit-is-recognised",
		"A transaction sent again with the token that committed is DecisionCompleted and Own, which settles an unknown commit.",
		needs{inboxes}, ownCommitIsRecognised,
	},
	{
		"transactions/loser-answers-at-once",
		"A transaction of a key that another one holds is DecisionInFlight at once, without waiting for a lock and without calling fn.",
		needs{inboxes}, loserAnswersAtOnce,
	},
	{
		"transactions/in-flight-is-visible-as-declared",
		"While a transaction runs, others see its fingerprint and lease if the driver declares InFlightVisible, and neither if not.",
		needs{inboxes}, inFlightIsVisible,
	},
	{
		"transactions/other-keys-go-on",
		"While a transaction runs, those of other keys begin and commit, unless the driver is a SingleWriter.",
		needs{inboxes, {"no SingleWriter", func(s *suite) bool { return !s.caps.SingleWriter }}}, otherKeysGoOn,
	},
	{
		"transactions/one-of-many-commits",
		"Of many transactions of one key, over several handles, exactly one commits; all others replay it.",
		needs{inboxes}, oneCommits,
	},
	{
		"transactions/keep-out-of-a-live-claim",
		"A transaction of a key that a live claim holds is DecisionInFlight and does not call fn; once that is completed, it replays.",
		needs{inboxes, leasesOrGuards}, transactKeepsOut,
	},
	{
		"transactions/retention-ends",
		"Past the retention of its outcome a transaction of the key is granted as a new generation with a higher fence.",
		needs{inboxes}, transactAfterRetention,
	},
	{
		"transactions/broken-parameters-are-refused",
		"A transaction whose claim breaks the contract is ErrInvalid and does not call fn.",
		needs{inboxes}, brokenTransactIsRefused,
	},
}

func transactCommits(s *suite) {
	id := newID()
	p := inbox(id)
	p.Fingerprint = fingerprint("mine")
	var given driver.ClaimResult
	res := s.transact(p, func(ctx context.Context, c driver.ClaimResult) (driver.CompleteParams, error) {
		given = c
		return completion(p), s.h.Effect(ctx, id)
	})
	if given.Decision != driver.DecisionClaimed || given.Fence <= 0 || given.Generation != given.Fence || given.Attempt != 1 {
		s.Errorf("fn was given %+v, want a first claim", given)
	}
	if res.Claim.Decision != driver.DecisionClaimed || res.Claim.Fence != given.Fence || res.Claim.Joined {
		s.Errorf("the result's claim is %+v, fn was given fence %d", res.Claim, given.Fence)
	}
	if res.Complete.CompletedAt.IsZero() || res.Complete.Already {
		s.Errorf("the result's completion is %+v", res.Complete)
	}
	s.effects(id, 1)
}

func transactReplays(s *suite) {
	id := newID()
	p := inbox(id)
	p.Fingerprint = fingerprint("mine")
	won := s.transact(p, s.effect(p, id))
	for _, d := range s.handles(2) {
		res, err := s.transactOn(d, s.ctx, again(p), s.notCalled)
		if err != nil {
			s.Fatalf("the duplicate: %v", err)
		}
		c := res.Claim
		if c.Decision != driver.DecisionCompleted || c.Own || !bytes.Equal(c.Outcome, outcome) ||
			!bytes.Equal(c.Fingerprint, p.Fingerprint) || c.Fence != won.Claim.Fence {
			s.Errorf("the duplicate is %+v, want the outcome of fence %d", c, won.Claim.Fence)
		}
	}
	s.effects(id, 1)
}

func ownCommitIsRecognised(s *suite) {
	id := newID()
	p := inbox(id)
	s.transact(p, s.effect(p, id))
	if res := s.transact(p, s.notCalled); res.Claim.Decision != driver.DecisionCompleted || !res.Claim.Own {
		s.Errorf("the second answer is %v, Own %v; want Completed, Own", res.Claim.Decision, res.Claim.Own)
	}
}

func loserAnswersAtOnce(s *suite) {
	id := newID()
	p := inbox(id)
	s.during(p, id, func() {
		sent := time.Now()
		ctx, cancel := context.WithTimeout(s.ctx, 2*atOnce)
		defer cancel()
		res, err := s.transactOn(s.d, ctx, again(p), s.notCalled)
		if took := time.Since(sent); took > atOnce {
			s.Errorf("the answer took %v", took)
		}
		if err != nil || res.Claim.Decision != driver.DecisionInFlight || res.Claim.Own {
			s.Errorf("the answer is %v, Own %v, %v; want InFlight", res.Claim.Decision, res.Claim.Own, err)
		}
	})
	s.effects(id, 1)
}

func inFlightIsVisible(s *suite) {
	id := newID()
	p := inbox(id)
	p.Fingerprint = fingerprint("mine")
	s.during(p, id, func() {
		dup := again(p)
		dup.Fingerprint = fingerprint("other")
		c := s.transact(dup, s.notCalled).Claim
		if c.Decision != driver.DecisionInFlight {
			s.Errorf("the decision is %v, want InFlight", c.Decision)
		}
		if visible := bytes.Equal(c.Fingerprint, p.Fingerprint) && c.LeaseLeft > 0; visible != s.caps.InFlightVisible {
			s.Errorf("fingerprint %q, LeaseLeft %v, but InFlightVisible is %v", c.Fingerprint, c.LeaseLeft, s.caps.InFlightVisible)
		}
	})
}

func otherKeysGoOn(s *suite) {
	id, other := newID(), newID()
	p := inbox(id)
	s.during(p, id, func() {
		ctx, cancel := context.WithTimeout(s.ctx, 2*atOnce)
		defer cancel()
		q := inbox(other)
		if _, err := s.transactOn(s.d, ctx, q, s.effect(q, other)); err != nil {
			s.Errorf("the transaction of another key: %v", err)
		}
		s.effects(other, 1)
	})
	s.effects(id, 1)
}

func oneCommits(s *suite) {
	id := newID()
	handles := s.handles(4)
	var ran, replayed atomic.Int32
	s.parallel(16, func(i int) {
		p := inbox(id)
		switch c := s.settle(handles[i%len(handles)], p, s.effect(p, id)).Claim; c.Decision {
		case driver.DecisionClaimed:
			ran.Add(1)
		case driver.DecisionCompleted:
			if c.Own { // an unknown commit that was settled
				ran.Add(1)
			} else {
				replayed.Add(1)
			}
		default:
			s.Errorf("the decision is %v, want Claimed or Completed", c.Decision)
		}
	})
	if ran.Load() != 1 || replayed.Load() != 15 {
		s.Errorf("%d ran and %d replayed, want 1 and 15", ran.Load(), replayed.Load())
	}
	s.effects(id, 1)
}

func transactKeepsOut(s *suite) {
	p := s.caller()
	s.grant(p)
	in := inbox(p.Key.ID)
	if d := s.transact(in, s.notCalled).Claim.Decision; d != driver.DecisionInFlight {
		s.Errorf("the transaction is %v, want InFlight", d)
	}
	s.complete(completion(p))
	if d := s.transact(in, s.notCalled).Claim.Decision; d != driver.DecisionCompleted {
		s.Errorf("the transaction after the completion is %v, want Completed", d)
	}
}

func transactAfterRetention(s *suite) {
	id := newID()
	p := inbox(id)
	won := s.transact(p, func(ctx context.Context, _ driver.ClaimResult) (driver.CompleteParams, error) {
		c := completion(p)
		c.Retention = time.Millisecond
		return c, nil
	})
	s.pass(time.Millisecond)
	c := s.commits(p, id)
	if c.Fence <= won.Claim.Fence || c.Generation != c.Fence || c.Attempt != 1 {
		s.Errorf("fence %d, generation %d, attempt %d; want a new generation above fence %d",
			c.Fence, c.Generation, c.Attempt, won.Claim.Fence)
	}
}

func brokenTransactIsRefused(s *suite) {
	p := inbox(newID())
	p.Lease = 0
	if _, err := s.transactOn(s.d, s.ctx, p, s.notCalled); !errors.Is(err, driver.ErrInvalid) {
		s.Errorf("Transact returned %v, want ErrInvalid", err)
	}
}
