package idemsql

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/idem-go/idem/driver"
)

// claimTries bounds how often a claim looks again because the record changed
// between a read and the write that it led to.
const claimTries = 16

// Claim implements [driver.Driver]. A new key costs a read, which takes no
// lock, and a write; a duplicate the read alone ([ReadFirst]; [ClaimFirst]
// saves the read).
func (s *Store) Claim(ctx context.Context, p driver.ClaimParams) (driver.ClaimResult, error) {
	if err := p.Validate(); err != nil {
		return driver.ClaimResult{}, err
	}
	if err := s.alone(ctx); err != nil {
		return driver.ClaimResult{}, err
	}
	if err := s.learn(ctx, s.db); err != nil {
		return driver.ClaimResult{}, s.failed("claim", err)
	}
	first := s.config.mode
	if first == Auto {
		first = s.dialect.leases
	}
	if first == Auto && s.guess.Likely(p.Key, s.leaseDuplicates()) {
		first = ReadFirst
	}
	res, err := s.claim(ctx, &p, first)
	if err != nil {
		return driver.ClaimResult{}, s.failed("claim", err)
	}
	s.saw(p.Key, res.Decision)
	if res.Decision == driver.DecisionClaimed && !res.Own {
		s.sweep(ctx)
	}
	return res, nil
}

func (s *Store) claim(ctx context.Context, p *driver.ClaimParams, first ClaimMode) (driver.ClaimResult, error) {
	in := session{Store: s}
	a := keyArgs(p.Key)
	var seen *record
	if first == ReadFirst {
		var res driver.ClaimResult
		var err error
		if seen, res, err = in.look(ctx, p, a); err != nil || res.Decision != 0 {
			return res, err
		}
	}
	if res, ok := s.flights.claimed(p.Key, s.dialect.unit); ok {
		return res, nil
	}
	s.claimArgs(a, p)
	var res driver.ClaimResult
	err := s.writing(ctx, func() (err error) {
		res, err = in.claim(ctx, p, a, seen)
		return err
	})
	return res, err
}

// look reads the record and answers the claim if that is all it takes: res has
// no decision if the key is free or the record may be taken.
func (s session) look(
	ctx context.Context, p *driver.ClaimParams, a *args,
) (seen *record, res driver.ClaimResult, err error) {
	if s.tx != nil {
		seen, err = s.read(ctx, a)
	} else {
		err = s.reading(ctx, func() (err error) {
			seen, err = s.read(ctx, a)
			return err
		})
	}
	if err != nil || seen == nil {
		return nil, res, err
	}
	v, err := judge(seen, p)
	return seen, v.answer, err
}

// claim claims the key. seen is the record that was read; nil: there was none,
// or nobody has looked. Its first statement is a write, so that a transaction
// that begins with it never has to turn a read lock into a write lock.
func (s session) claim(ctx context.Context, p *driver.ClaimParams, a *args, seen *record) (driver.ClaimResult, error) {
	if s.locks && s.dialect.templates[stUnlock] != "" {
		seen = nil // to lock the key comes first
	}
	for range claimTries {
		var res driver.ClaimResult
		var err error
		if seen == nil {
			seen, res, err = s.create(ctx, p, a)
		} else {
			seen, res, err = s.takeSeen(ctx, p, a, seen)
		}
		if err != nil || res.Decision != 0 {
			return res, err
		}
	}
	return driver.ClaimResult{}, fmt.Errorf("%w: the record changed %d times", driver.ErrConflict, claimTries)
}

// takeSeen answers the claim by the record that was read, or takes it. If it is
// another by now, next is that.
func (s session) takeSeen(
	ctx context.Context, p *driver.ClaimParams, a *args, seen *record,
) (next *record, res driver.ClaimResult, err error) {
	v, err := judge(seen, p)
	if err != nil || v.answer.Decision != 0 {
		return nil, v.answer, err
	}
	if res, err = s.take(ctx, p, a, seen, v); err != nil || res.Decision != 0 {
		return nil, res, err
	}
	next, err = s.readLatest(ctx, a)
	// MySQL does not say in an UPDATE without a row that the lock was taken; but
	// if the record is what it was, nothing else kept it.
	if next != nil && s.tried != nil && s.dialect.stamps && next.same(seen) {
		return nil, driver.ClaimResult{Decision: driver.DecisionInFlight}, nil
	}
	return next, res, err
}

// same reports whether nobody has written the record in between.
func (r *record) same(old *record) bool {
	return r.fence == old.fence && r.state == old.state && r.base() == old.base()
}

// How a claim of a new key may end, in place of the clock that it was granted by.
const (
	inTheWay  = 0 // a record is, or was
	elsewhere = 1 // another transaction has locked the key
)

// create claims a key that has no record. If it has one, seen is that; nil: it
// had one.
func (s session) create(ctx context.Context, p *driver.ClaimParams, a *args) (seen *record, res driver.ClaimResult, err error) {
	var stamp int64
	if id := s.locking(stClaim); id == stClaimTells {
		stamp, seen, err = s.tell(ctx, id, a)
	} else {
		stamp, _, err = s.stamp(ctx, id, a)
	}
	if err == nil && stamp == inTheWay && seen == nil {
		stamp, seen, err = s.met(ctx, a)
	}
	switch {
	case err != nil:
		return nil, res, err
	case stamp == inTheWay:
		return seen, res, nil
	case stamp == elsewhere:
		return nil, driver.ClaimResult{Decision: driver.DecisionInFlight}, nil
	}
	return nil, s.created(p, stamp), nil
}

// created answers a claim that made the record when the clock was now.
func (s *Store) created(p *driver.ClaimParams, now int64) driver.ClaimResult {
	r := s.claimed(p, now)
	r.fence, r.generation, r.attempt = now, now, 1
	return r.answer(driver.DecisionClaimed, false)
}

// met reads what a claim of a new key has met.
func (s session) met(ctx context.Context, a *args) (stamp int64, seen *record, err error) {
	if s.locks && s.dialect.templates[stLockTells] != "" {
		return s.tell(ctx, stLockTells, a)
	}
	seen, err = s.readLatest(ctx, a)
	return inTheWay, seen, err
}

// take takes the record that was read; no decision: it is another one by now.
func (s session) take(ctx context.Context, p *driver.ClaimParams, a *args, seen *record, v verdict) (driver.ClaimResult, error) {
	b := *a
	b[pFence], b[pState], b[pBase], b[pFrom], b[pUntil] = seen.fence, int64(seen.state), seen.base(), v.from, v.until
	b[pFresh], b[pTookOver], b[pFingerprint] = flag(v.fresh), flag(v.tookOver), blob(v.fingerprint)
	stamp, found, err := s.stamp(ctx, s.locking(stTake), &b)
	switch {
	case !found || err != nil:
		return driver.ClaimResult{}, err
	case stamp == elsewhere:
		return driver.ClaimResult{Decision: driver.DecisionInFlight}, nil
	}
	r := s.claimed(p, stamp)
	r.fence, r.generation, r.attempt, r.tookOver = max(seen.fence+1, stamp), seen.generation, seen.attempt+1, v.tookOver
	if v.fresh {
		r.generation, r.attempt = r.fence, 1
	}
	if v.tookOver {
		r.fingerprint = seen.fingerprint
	}
	return r.answer(driver.DecisionClaimed, false), nil
}

// claimed is the part of a record that a claim made when the clock was now.
func (s *Store) claimed(p *driver.ClaimParams, now int64) *record {
	return &record{
		format:    int64(p.Format),
		state:     driver.StateClaimed,
		onLapse:   p.OnLapse,
		claimedAt: now,
		leaseEnd:  sql.NullInt64{Int64: now + s.dialect.us(p.Lease), Valid: true},
		now:       now,
		unit:      s.dialect.unit,
	}
}
