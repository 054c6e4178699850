package idemsql

import (
	"context"

	"github.com/idem-go/idem/driver"
)

// ClaimBatch implements [driver.BatchClaimer] with one statement for all new
// keys and, if some are not, a read of those; on MySQL and MariaDB always with
// both. What has to be taken from somebody is claimed by itself afterwards.
func (s *Store) ClaimBatch(ctx context.Context, p driver.ClaimBatchParams) (driver.ClaimBatchResult, error) {
	if err := s.alone(ctx); err != nil {
		return driver.ClaimBatchResult{}, err
	}
	if err := s.learn(ctx, s.db); err != nil {
		return driver.ClaimBatchResult{}, s.failed("claim", err)
	}
	answers := make([]driver.ClaimAnswer, len(p.Claims))
	singly := func(i int) { answers[i].Result, answers[i].Err = s.Claim(ctx, p.Claims[i]) }
	claim := func(i int) (driver.Key, *args) {
		c := &p.Claims[i]
		if answers[i].Err = c.Validate(); answers[i].Err != nil {
			return c.Key, nil
		}
		if res, ok := s.flights.claimed(c.Key, s.dialect.unit); ok {
			answers[i].Result = res
			return c.Key, nil
		}
		a := keyArgs(c.Key)
		s.claimArgs(a, c)
		return c.Key, a
	}
	batches, rest := s.collect(stClaimBatch, len(p.Claims), claim)
	for _, b := range batches {
		s.claimBatch(ctx, b, p.Claims, answers, singly)
	}
	for _, i := range rest {
		singly(i)
	}
	return driver.ClaimBatchResult{Claims: answers}, nil
}

func (s *Store) claimBatch(ctx context.Context, b batch, claims []driver.ClaimParams, answers []driver.ClaimAnswer, singly func(int)) {
	in := session{Store: s}
	w, err := in.writeBatch(ctx, stClaimBatch, b)
	var found map[driver.Key]*record
	if err == nil {
		var rest batch
		for _, e := range b {
			if w.of[e.key] == 0 {
				rest = append(rest, e)
			}
		}
		found, err = in.readBatch(ctx, rest)
	}
	granted := false
	for _, e := range b {
		p, a := &claims[e.place], &answers[e.place]
		stamp, r := w.of[e.key], found[e.key]
		if r != nil && r.owner() == p.Token && r.state == driver.StateClaimed && r.claimedAt == w.stamp {
			stamp = w.stamp
		}
		var v verdict
		switch {
		case err == nil && stamp != 0:
			granted = true
			v.answer = s.created(p, stamp)
		case err == nil && r != nil:
			if v, a.Err = judge(r, p); a.Err != nil {
				a.Err = s.failed("claim", a.Err)
			}
		}
		if a.Result = v.answer; a.Err == nil && v.answer.Decision == 0 {
			singly(e.place) // it has to be taken, is gone again, or the batch failed: the token knows itself
			continue
		}
		s.saw(p.Key, a.Result.Decision)
	}
	if granted {
		s.sweep(ctx)
	}
}
