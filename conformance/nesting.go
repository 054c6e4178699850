package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/idem-go/idem/driver"
)

var nestingCases = []testCase{
	{
		"nesting/inner-joins-the-outer",
		"A transaction in the context of another one of the store joins it: Joined, and both commit together.",
		needs{inboxes}, innerJoins,
	},
	{
		"nesting/inner-failure-rolls-back-the-inner",
		"If a joined fn fails, its effect and claim alone are rolled back, its error is returned unchanged, and the outer transaction goes on.",
		needs{inboxes}, innerFailure,
	},
	{
		"nesting/outer-failure-takes-the-inner-with-it",
		"If the outer fn fails, a joined transaction that had succeeded is rolled back too.",
		needs{inboxes}, outerFailure,
	},
	{
		"nesting/completed-inner-replays",
		"A joined transaction of a completed key is DecisionCompleted and does not call fn.",
		needs{inboxes}, innerReplays,
	},
	{
		"nesting/claim-inside-is-refused-or-apart",
		"A claim inside a transaction is ErrNested at once on a SingleWriter, and elsewhere is made apart: others see it, and a rollback leaves it.",
		needs{inboxes, leasesOrGuards}, claimInside,
	},
}

func innerJoins(s *suite) {
	outer, inner := newID(), newID()
	p := inbox(outer)
	res := s.transact(p, func(ctx context.Context, c driver.ClaimResult) (driver.CompleteParams, error) {
		q := inbox(inner)
		res, err := s.transactOn(s.d, ctx, q, s.effect(q, inner))
		if err != nil {
			return driver.CompleteParams{}, err
		}
		if res.Claim.Decision != driver.DecisionClaimed || !res.Claim.Joined {
			s.Errorf("the inner claim is %v, Joined %v; want Claimed, Joined", res.Claim.Decision, res.Claim.Joined)
		}
		return s.effect(p, outer)(ctx, c)
	})
	if res.Claim.Joined {
		s.Errorf("the outer claim is Joined")
	}
	for _, id := range []string{outer, inner} {
		s.effects(id, 1)
		if d := s.transact(inbox(id), s.notCalled).Claim.Decision; d != driver.DecisionCompleted {
			s.Errorf("afterwards the key is %v, want Completed", d)
		}
	}
}

func innerFailure(s *suite) {
	outer, inner := newID(), newID()
	p := inbox(outer)
	failure := errors.New("inner fn failed")
	s.transact(p, func(ctx context.Context, c driver.ClaimResult) (driver.CompleteParams, error) {
		_, err := s.transactOn(s.d, ctx, inbox(inner), s.failing(inner, func() error { return failure }))
		if err != failure { //nolint:errorlint // unchanged means this very value
			s.Errorf("the inner Transact returned %v, want fn's error unchanged", err)
		}
		return s.effect(p, outer)(ctx, c)
	})
	s.effects(outer, 1)
	s.rolledBack(inbox(inner), inner)
}

func outerFailure(s *suite) {
	outer, inner := newID(), newID()
	failure := errors.New("outer fn failed")
	_, err := s.transactOn(s.d, s.ctx, inbox(outer), func(ctx context.Context, _ driver.ClaimResult) (driver.CompleteParams, error) {
		q := inbox(inner)
		if _, err := s.transactOn(s.d, ctx, q, s.effect(q, inner)); err != nil {
			s.Errorf("the inner Transact: %v", err)
		}
		return driver.CompleteParams{}, failure
	})
	if err != failure { //nolint:errorlint // unchanged means this very value
		s.Errorf("Transact returned %v, want fn's error unchanged", err)
	}
	s.rolledBack(inbox(inner), inner)
	s.rolledBack(inbox(outer), outer)
}

func innerReplays(s *suite) {
	outer, inner := newID(), newID()
	q := inbox(inner)
	s.transact(q, s.effect(q, inner))
	p := inbox(outer)
	s.transact(p, func(ctx context.Context, c driver.ClaimResult) (driver.CompleteParams, error) {
		res, err := s.transactOn(s.d, ctx, again(q), s.notCalled)
		if err != nil || res.Claim.Decision != driver.DecisionCompleted {
			s.Errorf("the inner answer is %v, %v; want Completed", res.Claim.Decision, err)
		}
		return s.effect(p, outer)(ctx, c)
	})
	s.effects(outer, 1)
	s.effects(inner, 1)
}

func claimInside(s *suite) {
	id := newID()
	inside := s.caller()
	_, err := s.transactOn(s.d, s.ctx, inbox(id), func(ctx context.Context, _ driver.ClaimResult) (driver.CompleteParams, error) {
		sent := time.Now()
		res, err := s.d.Claim(ctx, inside)
		if took := time.Since(sent); took > atOnce {
			s.Errorf("the claim inside took %v", took)
		}
		switch {
		case s.caps.SingleWriter && !errors.Is(err, driver.ErrNested):
			s.Errorf("the claim inside returned %v, want ErrNested", err)
		case !s.caps.SingleWriter && (err != nil || res.Decision != driver.DecisionClaimed):
			s.Errorf("the claim inside is %v, %v; want Claimed", res.Decision, err)
		case !s.caps.SingleWriter:
			s.expect(driver.DecisionInFlight, again(inside))
		}
		return driver.CompleteParams{}, errors.New("roll back")
	})
	if err == nil {
		s.Errorf("Transact returned no error")
	}
	if !s.caps.SingleWriter {
		s.expect(driver.DecisionInFlight, again(inside))
	}
}
