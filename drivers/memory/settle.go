package idemmemory

import (
	"context"
	"time"

	"github.com/idem-go/idem/driver"
)

// Complete implements [driver.Driver].
func (s *Store) Complete(ctx context.Context, p driver.CompleteParams) (driver.CompleteResult, error) {
	if err := p.Validate(); err != nil {
		return driver.CompleteResult{}, err
	}
	if err := ctx.Err(); err != nil {
		return driver.CompleteResult{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	r := s.owned(p.Key, p.Token)
	if r == nil || r.state == driver.StateReleased {
		return driver.CompleteResult{}, driver.ErrLost
	}
	already := r.state != driver.StateClaimed
	if !already {
		r.state, r.outcome, r.format = p.To, p.Outcome, p.Format
		r.end, r.retention, r.tombstone = now, p.Retention, p.Tombstone
		s.moved(r, now)
	}
	return driver.CompleteResult{
		CompletedAt: shown(r.end),
		LifeLeft:    left(now, after(r.end, r.retention)),
		Already:     already,
	}, nil
}

// Release implements [driver.Driver].
func (s *Store) Release(ctx context.Context, p driver.ReleaseParams) (driver.ReleaseResult, error) {
	if err := p.Validate(); err != nil {
		return driver.ReleaseResult{}, err
	}
	if err := ctx.Err(); err != nil {
		return driver.ReleaseResult{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.owned(p.Key, p.Token)
	switch {
	case r == nil:
		return driver.ReleaseResult{}, driver.ErrLost
	case r.state == driver.StateReleased:
		return driver.ReleaseResult{}, nil
	case r.state != driver.StateClaimed:
		return driver.ReleaseResult{}, driver.ErrLost
	}
	s.release(r, time.Now(), p.Keep)
	return driver.ReleaseResult{}, nil
}

// release makes the record a stub.
func (s *Store) release(r *record, now time.Time, keep time.Duration) {
	r.state, r.end = driver.StateReleased, now
	r.fingerprint, r.outcome = nil, nil
	r.retention, r.tombstone = max(keep, driver.FenceMemory), 0
	s.moved(r, now)
}

// Renew implements [driver.Driver].
func (s *Store) Renew(ctx context.Context, p driver.RenewParams) (driver.RenewResult, error) {
	if err := p.Validate(); err != nil {
		return driver.RenewResult{}, err
	}
	if err := ctx.Err(); err != nil {
		return driver.RenewResult{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	r := s.owned(p.Key, p.Token)
	if r == nil || r.state != driver.StateClaimed {
		return driver.RenewResult{}, driver.ErrLost
	}
	if end := after(now, p.Lease); end.After(r.end) {
		r.end = end
		s.moved(r, now)
	}
	return driver.RenewResult{LeaseLeft: left(now, r.end)}, nil
}

// owned returns the key's record if it carries the token, else nil.
func (s *Store) owned(k driver.Key, t driver.Token) *record {
	if r := s.records[k]; r != nil && r.token == t {
		return r
	}
	return nil
}
