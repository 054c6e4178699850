package idemmemory

import (
	"context"
	"time"

	"github.com/idem-go/idem/driver"
)

// Claim implements [driver.Driver].
func (s *Store) Claim(ctx context.Context, p driver.ClaimParams) (driver.ClaimResult, error) {
	if err := p.Validate(); err != nil {
		return driver.ClaimResult{}, err
	}
	if err := ctx.Err(); err != nil {
		return driver.ClaimResult{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now() // after the lock: a lease starts when it is granted
	r := s.records[p.Key]
	if r == nil {
		return s.create(now, p)
	}
	return s.decide(now, r, p)
}

// create claims a key that has no record.
func (s *Store) create(now time.Time, p driver.ClaimParams) (driver.ClaimResult, error) {
	if !s.makeRoom(now) {
		return driver.ClaimResult{}, driver.ErrBusy
	}
	r := &record{key: p.Key, fence: s.fence}
	s.records[p.Key] = r
	r.begin(now)
	res := r.grant(now, p)
	s.add(r, now)
	return res, nil
}

// decide answers the claim of a key that has a record.
func (s *Store) decide(now time.Time, r *record, p driver.ClaimParams) (driver.ClaimResult, error) {
	if r.format > p.Format {
		return driver.ClaimResult{}, driver.ErrNewerFormat
	}
	own := r.token == p.Token
	state, until := r.at(now)
	switch {
	case own && r.state == driver.StateClaimed:
		return r.answer(now, driver.DecisionClaimed, own), nil
	case own && r.state == driver.StateReleased:
		return driver.ClaimResult{}, driver.ErrLost
	case state == 0:
		r.begin(now)
		return s.regrant(now, r, p), nil
	case state == driver.StateReleased:
		r.resume(now)
		return s.regrant(now, r, p), nil
	case state == driver.StateClaimed && mayTakeOver(now, until, r, p),
		state == driver.StateUncertain && p.Over == r.fence:
		return s.takeOver(now, r, p), nil
	}
	return r.answer(now, decisions[state], own), nil
}

func mayTakeOver(now, end time.Time, r *record, p driver.ClaimParams) bool {
	if now.Before(end) {
		return false
	}
	return driver.SameFingerprint(r.fingerprint, p.Fingerprint) || lapsedLongAgo(now, end)
}

var decisions = [...]driver.Decision{
	driver.StateClaimed:   driver.DecisionInFlight,
	driver.StateCompleted: driver.DecisionCompleted,
	driver.StateUncertain: driver.DecisionUncertain,
	driver.StateExpired:   driver.DecisionExpired,
}

// begin starts a new generation.
func (r *record) begin(now time.Time) {
	r.fence = max(r.fence+1, now.UnixMicro())
	r.generation, r.attempt = r.fence, 1
	r.fingerprint, r.tookOver = nil, false
}

// resume goes on with the generation of a stub.
func (r *record) resume(now time.Time) {
	r.fence = max(r.fence+1, now.UnixMicro())
	r.attempt++
	r.fingerprint, r.tookOver = nil, false
}

// takeOver goes on with the generation of an owner that is gone.
func (s *Store) takeOver(now time.Time, r *record, p driver.ClaimParams) driver.ClaimResult {
	before := r.fingerprint
	r.fence = max(r.fence+1, now.UnixMicro())
	r.attempt++
	r.tookOver = true
	res := s.regrant(now, r, p)
	res.Fingerprint = before
	return res
}

// regrant hands an existing record to the claim.
func (s *Store) regrant(now time.Time, r *record, p driver.ClaimParams) driver.ClaimResult {
	res := r.grant(now, p)
	s.moved(r, now)
	return res
}

// grant makes the claim the owner of the record, whose fence, generation and
// attempt are set.
func (r *record) grant(now time.Time, p driver.ClaimParams) driver.ClaimResult {
	r.state, r.token = driver.StateClaimed, p.Token
	if len(p.Fingerprint) > 0 {
		r.fingerprint = p.Fingerprint
	}
	r.outcome = nil
	r.onLapse, r.guarantee, r.format = p.OnLapse, p.Guarantee, p.Format
	r.retention, r.tombstone = p.Retention, p.Tombstone
	r.claimedAt, r.end = now, after(now, p.Lease)
	res := r.answer(now, driver.DecisionClaimed, false)
	res.Fingerprint = nil
	return res
}

// answer tells of the record as it is.
func (r *record) answer(now time.Time, d driver.Decision, own bool) driver.ClaimResult {
	res := driver.ClaimResult{
		Decision:    d,
		Own:         own,
		Fence:       r.fence,
		Generation:  r.generation,
		Attempt:     r.attempt,
		Fingerprint: r.fingerprint,
		OnLapse:     r.onLapse,
		Format:      r.format,
		ClaimedAt:   shown(r.claimedAt),
		DecidedAt:   shown(now),
	}
	if d == driver.DecisionClaimed || d == driver.DecisionInFlight {
		res.TookOver = r.tookOver && d == driver.DecisionClaimed
		res.LeaseLeft = left(now, r.end)
		return res
	}
	if d == driver.DecisionCompleted {
		res.Outcome = r.outcome
	}
	_, until := r.at(now)
	res.LifeLeft = left(now, until)
	res.CompletedAt = shown(r.end)
	return res
}
