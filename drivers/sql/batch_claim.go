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
		found, err = in.readBatch(ctx, w.rest(b))
	}
	granted := false
	for _, e := range b {
		p, a := &claims[e.place], &answers[e.place]
		if err == nil {
			*a = s.answer(e, p, w, found[e.key])
		}
		if a.Err == nil && a.Result.Decision == 0 {
			singly(e.place) // it has to be taken, is gone again, or the batch failed: the token knows itself
			continue
		}
		granted = granted || a.Result.Decision == driver.DecisionClaimed && !a.Result.Own
		s.saw(p.Key, a.Result.Decision)
	}
	if granted {
		s.sweep(ctx)
	}
}

// rest are the entries that the batch has not written, as far as it says so.
func (w *written) rest(b batch) (rest batch) {
	for _, e := range b {
		if w.of[e.key] == 0 {
			rest = append(rest, e)
		}
	}
	return rest
}

// answer is the answer to one claim of a batch; no decision: there is none yet.
// r is the record that was there, or that the batch made if it says so for none.
func (s *Store) answer(e entry, p *driver.ClaimParams, w written, r *record) driver.ClaimAnswer {
	stamp := w.of[e.key]
	if e.owns(r) && r.state == driver.StateClaimed && r.claimedAt == w.stamp {
		stamp = w.stamp
	}
	switch {
	case stamp != 0:
		return driver.ClaimAnswer{Result: s.created(p, stamp)}
	case r == nil:
		return driver.ClaimAnswer{}
	}
	v, err := judge(r, p)
	if err != nil {
		return driver.ClaimAnswer{Err: s.failed("claim", err)}
	}
	return driver.ClaimAnswer{Result: v.answer}
}
