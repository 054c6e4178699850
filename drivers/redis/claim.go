package idemredis

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/idem-go/idem/driver"
)

// Claim implements [driver.Driver].
func (s *Store) Claim(ctx context.Context, p driver.ClaimParams) (driver.ClaimResult, error) {
	if err := checkClaim(&p); err != nil {
		return driver.ClaimResult{}, err
	}
	if s.waits() {
		return s.claimConfirmed(ctx, &p)
	}
	if s.peeks(&p) {
		if res, ok := s.peek(ctx, &p); ok {
			s.saw(&p, res)
			return res, nil
		}
	}
	res, err := s.claimOn(ctx, s.client, &p)
	if err == nil {
		s.saw(&p, res)
	}
	return res, err
}

// checkClaim refuses also what the layout of a record cannot hold.
func checkClaim(p *driver.ClaimParams) error {
	switch {
	case len(p.Fingerprint) > math.MaxUint16:
		return invalid("a fingerprint of %d bytes", len(p.Fingerprint))
	case p.Format > math.MaxInt32:
		return invalid("format is %d", p.Format)
	}
	return p.Validate()
}

func (s *Store) claimOn(ctx context.Context, c rueidis.CommandClient, p *driver.ClaimParams) (driver.ClaimResult, error) {
	a, err := claimScript.run(ctx, c, s.physical(p.Key), claimArgs(p, false))
	return claimed(a, err, p)
}

// claimArgs are the arguments of claim.lua. touch makes a claim that is its own
// write something.
func claimArgs(p *driver.ClaimParams, touch bool) []string {
	return []string{
		rueidis.BinaryString(p.Token[:]),
		rueidis.BinaryString(p.Fingerprint),
		micros(p.Lease),
		strconv.Itoa(int(p.OnLapse)),
		strconv.Itoa(int(p.Guarantee)),
		micros(p.Retention),
		micros(p.Tombstone),
		strconv.FormatInt(p.Over, 10),
		strconv.Itoa(p.Format),
		flag(p.WaiterHint),
		flag(touch),
	}
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// claimed reads the answer to a claim.
func claimed(a answer, err error, p *driver.ClaimParams) (driver.ClaimResult, error) {
	if err != nil {
		return driver.ClaimResult{}, failed("claim", err)
	}
	r, ok := decode(a.bytes(2))
	now, until := a.int(0), a.int(1)
	if a.alone {
		r, ok = decode(a.text)
		now, until = r.claimedAt, r.end
	}
	if !ok {
		return driver.ClaimResult{}, failed("claim", fmt.Errorf("%w: the answer holds no record", driver.ErrCorrupt))
	}
	res := r.answer(decision(a.verdict), p)
	res.DecidedAt = clock(now)
	if a.verdict == verdictOK {
		res.Own, res.Fingerprint = false, a.bytes(3)
	}
	if res.Decision == driver.DecisionClaimed || res.Decision == driver.DecisionInFlight {
		res.TookOver = r.tookOver && res.Decision == driver.DecisionClaimed
		res.LeaseLeft = left(now, until)
		return res, nil
	}
	res.LifeLeft = left(now, until)
	res.CompletedAt = clock(r.end)
	return res, nil
}

// answer is what a claim that came to d is told of the record, but for times
// that need a clock.
func (r *record) answer(d driver.Decision, p *driver.ClaimParams) driver.ClaimResult {
	res := driver.ClaimResult{
		Decision:    d,
		Own:         r.token == p.Token,
		Fence:       r.fence,
		Generation:  r.generation,
		Attempt:     r.attempt,
		Fingerprint: r.fingerprint,
		OnLapse:     r.onLapse,
		Format:      r.format,
		ClaimedAt:   clock(r.claimedAt),
	}
	if d == driver.DecisionCompleted {
		res.Outcome = r.outcome
	}
	return res
}

// decision is what the state that a claim found means for it, if it was not
// granted.
func decision(v verdict) driver.Decision {
	switch v {
	case verdict(driver.StateClaimed):
		return driver.DecisionInFlight
	case verdict(driver.StateCompleted):
		return driver.DecisionCompleted
	case verdict(driver.StateUncertain):
		return driver.DecisionUncertain
	case verdict(driver.StateExpired):
		return driver.DecisionExpired
	default: // verdictOK, verdictOwn
		return driver.DecisionClaimed
	}
}
