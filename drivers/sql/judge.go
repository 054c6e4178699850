package idemsql

import (
	"github.com/idem-go/idem/driver"
)

// verdict is what a record means for a claim: an answer, or that the claim may
// take it, as long as it is what was read and the clock is past from and not
// past until.
type verdict struct {
	answer driver.ClaimResult // Decision 0: take it

	fresh       bool // a new generation
	tookOver    bool
	fingerprint []byte // to store
	from, until int64
}

// judge decides a claim of a key that has a record. A read never grants: the
// statement that takes the record checks by the clock of its own that the
// verdict still holds.
func judge(r *record, p *driver.ClaimParams) (verdict, error) {
	if r.format > int64(p.Format) {
		return verdict{}, driver.ErrNewerFormat
	}
	if err := r.check(); err != nil {
		return verdict{}, err
	}
	own := r.owner() == p.Token
	state, until := r.at()
	switch {
	case own && r.state == driver.StateClaimed:
		return verdict{answer: r.answer(driver.DecisionClaimed, own)}, nil
	case own && r.state == driver.StateReleased:
		return verdict{}, driver.ErrLost
	case state == 0:
		return verdict{fresh: true, fingerprint: p.Fingerprint, from: r.free(), until: forever}, nil
	case state == driver.StateReleased:
		return verdict{fingerprint: p.Fingerprint, until: until}, nil
	case state == driver.StateClaimed && r.lapsed():
		return r.lapse(p), nil
	case state == driver.StateUncertain && p.Over == r.fence:
		v := r.takeOver(p, 0)
		v.until = until
		if r.state == driver.StateClaimed {
			v.from = r.leaseEnd.Int64
		}
		return v, nil
	}
	return verdict{answer: r.answer(decisions[state], own)}, nil
}

var decisions = [...]driver.Decision{
	driver.StateClaimed:   driver.DecisionInFlight,
	driver.StateCompleted: driver.DecisionCompleted,
	driver.StateUncertain: driver.DecisionUncertain,
	driver.StateExpired:   driver.DecisionExpired,
}

// lapse judges a lease with [driver.TakeOver] that is over: the same request
// may take it, another one only when its fence needs to be remembered no
// longer.
func (r *record) lapse(p *driver.ClaimParams) verdict {
	end := r.leaseEnd.Int64
	switch {
	case driver.SameFingerprint(r.fingerprint, p.Fingerprint):
		return r.takeOver(p, end)
	case r.now > end+fenceMemory:
		return r.takeOver(p, end+fenceMemory)
	}
	return verdict{answer: r.answer(driver.DecisionInFlight, false)}
}

// takeOver goes on with the generation of an owner that is gone.
func (r *record) takeOver(p *driver.ClaimParams, from int64) verdict {
	v := verdict{tookOver: true, fingerprint: p.Fingerprint, from: from, until: forever}
	if len(v.fingerprint) == 0 {
		v.fingerprint = r.fingerprint
	}
	return v
}

// free is the time from which on the key of a record in state 0 is free.
func (r *record) free() int64 {
	t := later(r.base(), r.retention)
	if r.state == driver.StateReleased {
		return t
	}
	return later(t, r.tombstone)
}

// answer tells of the record as it is.
func (r *record) answer(d driver.Decision, own bool) driver.ClaimResult {
	res := driver.ClaimResult{
		Decision:    d,
		Own:         own,
		Fence:       r.fence,
		Generation:  r.generation,
		Attempt:     r.attempt,
		Fingerprint: r.fingerprint,
		OnLapse:     r.onLapse,
		Format:      int(r.format),
		ClaimedAt:   clock(r.claimedAt),
		DecidedAt:   clock(r.now),
	}
	switch d {
	case driver.DecisionClaimed, driver.DecisionInFlight:
		res.TookOver = r.tookOver && d == driver.DecisionClaimed
		res.LeaseLeft = r.left(r.leaseEnd.Int64)
		return res
	case driver.DecisionCompleted:
		res.Outcome = r.outcome
	default:
	}
	_, until := r.at()
	res.LifeLeft = r.left(until)
	res.CompletedAt = clock(r.base())
	return res
}
