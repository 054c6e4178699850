package idemmemory

import (
	"context"
	"time"

	"github.com/idem-go/idem/driver"
)

// Inspect implements [driver.Inspector].
func (s *Store) Inspect(ctx context.Context, p driver.InspectParams) (driver.InspectResult, error) {
	if err := ctx.Err(); err != nil {
		return driver.InspectResult{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[p.Key]
	if r == nil {
		return driver.InspectResult{}, nil
	}
	rec, found := r.show(time.Now())
	return driver.InspectResult{Found: found, Record: rec}, nil
}

// show is the record as its user sees it; false if it is past everything.
func (r *record) show(now time.Time) (driver.Record, bool) {
	state, until := r.visible(now)
	if state == 0 {
		return driver.Record{}, false
	}
	rec := driver.Record{
		Key:         r.key,
		State:       state,
		Guarantee:   r.guarantee,
		OnLapse:     r.onLapse,
		Fence:       r.fence,
		Generation:  r.generation,
		Attempt:     r.attempt,
		Fingerprint: r.fingerprint,
		Format:      r.format,
		ClaimedAt:   shown(r.claimedAt),
	}
	if state == driver.StateClaimed {
		rec.LeaseLeft = left(now, until)
		return rec, true
	}
	rec.LifeLeft = left(now, until)
	if state != driver.StateReleased {
		rec.CompletedAt = shown(r.end)
	}
	if state == driver.StateCompleted {
		rec.Outcome = r.outcome
	}
	return rec, true
}

// Resolve implements [driver.Resolver].
func (s *Store) Resolve(ctx context.Context, p driver.ResolveParams) (driver.ResolveResult, error) {
	if err := p.Validate(); err != nil {
		return driver.ResolveResult{}, err
	}
	if err := ctx.Err(); err != nil {
		return driver.ResolveResult{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[p.Key]
	if r == nil {
		return driver.ResolveResult{}, nil
	}
	now := time.Now()
	state, until := r.visible(now)
	switch {
	case state == 0:
		return driver.ResolveResult{}, nil
	case r.format > p.Format:
		return driver.ResolveResult{}, driver.ErrNewerFormat
	case r.fence != p.Fence || !resolvable(p.Action, state, now, until):
		res := driver.ResolveResult{State: state, Fence: r.fence}
		if state == driver.StateClaimed {
			res.LeaseLeft = left(now, until)
		}
		return res, nil
	}
	s.resolve(r, now, p)
	return driver.ResolveResult{Applied: true}, nil
}

// resolvable reports whether the action applies to a record of the state.
func resolvable(a driver.ResolveAction, state driver.State, now, until time.Time) bool {
	if a == driver.ResolveForget {
		return state != driver.StateClaimed || !now.Before(until)
	}
	return state == driver.StateUncertain
}

func (s *Store) resolve(r *record, now time.Time, p driver.ResolveParams) {
	r.token = driver.Token{}
	switch p.Action {
	case driver.ResolveCompleted:
		r.state, r.outcome, r.format = driver.StateCompleted, p.Outcome, p.Format
		r.end, r.retention, r.tombstone = now, p.Retention, p.Tombstone
		s.moved(r, now)
	case driver.ResolveNotRun:
		s.release(r, now, 0)
	case driver.ResolveForget:
		s.drop(r)
	}
}
