package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem/driver"
)

var cancellationCases = []testCase{
	{
		"cancellation/is-recognisable",
		"A call whose context is cancelled succeeds, or its error is context.Canceled to errors.Is; sent again, it is settled.",
		needs{leasesOrGuards}, cancellationIsRecognisable,
	},
	{
		"cancellation/deadline-is-recognisable",
		"A call whose deadline is over succeeds, or its error is context.DeadlineExceeded to errors.Is.",
		needs{leasesOrGuards}, deadlineIsRecognisable,
	},
	{
		"cancellation/leaves-nothing-half-done",
		"Where claims are cancelled at any moment, the key has one owner at most, which its token still recognises.",
		needs{leasesOrGuards}, cancelledClaims,
	},
}

// ended wants err to be nil or cause.
func (s *suite) ended(what string, err, cause error) {
	if err != nil && !errors.Is(err, cause) {
		s.Errorf("%s returned %v, which is not %v", what, err, cause)
	}
}

func cancellationIsRecognisable(s *suite) {
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	s.callsEnd(ctx, context.Canceled)
}

func deadlineIsRecognisable(s *suite) {
	ctx, cancel := context.WithDeadline(s.ctx, time.Now().Add(-time.Second))
	defer cancel()
	s.callsEnd(ctx, context.DeadlineExceeded)
}

// callsEnd wants each call in ctx to end as it should, and to be settled by
// sending it again.
func (s *suite) callsEnd(ctx context.Context, cause error) {
	p := s.caller()
	_, err := s.d.Claim(ctx, p)
	s.ended("Claim", err, cause)
	s.grant(p)
	_, err = s.d.Renew(ctx, driver.RenewParams{Key: p.Key, Token: p.Token, Lease: long})
	s.ended("Renew", err, cause)
	s.renew(p, long)
	_, err = s.d.Release(ctx, driver.ReleaseParams{Key: p.Key, Token: p.Token})
	s.ended("Release", err, cause)
	s.release(p)
	p = again(p)
	s.grant(p)
	_, err = s.d.Complete(ctx, completion(p))
	s.ended("Complete", err, cause)
	s.complete(completion(p))
	s.expect(driver.DecisionCompleted, again(p))
}

func cancelledClaims(s *suite) {
	for round := range 10 {
		p := s.caller()
		p.Key = key(fmt.Sprint("round", round))
		callers := make([]driver.ClaimParams, 8)
		s.parallel(len(callers), func(i int) {
			callers[i] = again(p)
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			switch i % 4 {
			case 0:
				cancel()
			case 2:
				go cancel()
			}
			_, err := s.d.Claim(ctx, callers[i])
			s.ended("Claim", err, context.Canceled)
		})
		var owners int
		for _, q := range callers {
			if s.try(q).Decision == driver.DecisionClaimed {
				owners++
				s.renew(q, long)
			}
		}
		if owners != 1 {
			s.Errorf("%d callers own the key, want 1", owners)
		}
	}
}
