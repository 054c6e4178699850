package tiny

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/idem-go/idem/driver"
)

// Inspect implements [driver.Inspector].
func (s *Store) Inspect(_ context.Context, p driver.InspectParams) (driver.InspectResult, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	now := time.Now()
	rec := s.Records[p.Key].show(p.Key, now)
	return driver.InspectResult{Found: rec.State != 0, Record: rec}, nil
}

func (r Record) show(k driver.Key, now time.Time) driver.Record {
	state, end := r.At(now)
	if state == 0 || r.over(now) {
		return driver.Record{}
	}
	rec := driver.Record{
		Key: k, State: state, Guarantee: r.Guarantee, OnLapse: r.OnLapse, Fence: r.Fence,
		Generation: r.Generation, Attempt: r.Attempt, Fingerprint: r.Fingerprint, Format: r.Format,
		ClaimedAt: r.ClaimedAt,
	}
	if state == driver.StateClaimed {
		rec.LeaseLeft = left(now, end)
		return rec
	}
	rec.LifeLeft = left(now, end)
	if state != driver.StateReleased {
		rec.CompletedAt = r.ended()
	}
	if state == driver.StateCompleted {
		rec.Outcome = r.Outcome
	}
	return rec
}

// List implements [driver.Lister].
func (s *Store) List(_ context.Context, p driver.ListParams) (driver.ListResult, error) {
	if p.Limit < 1 {
		return driver.ListResult{}, fmt.Errorf("%w: a page of %d records", driver.ErrInvalid, p.Limit)
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	now := time.Now()
	var all []driver.Record
	for k, r := range s.Records {
		rec := r.show(k, now)
		if rec.State == 0 || p.Scope != "" && k.Scope != p.Scope || p.State != 0 && rec.State != p.State || k.String() <= p.After {
			continue
		}
		all = append(all, rec)
	}
	slices.SortFunc(all, func(a, b driver.Record) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	if len(all) <= p.Limit {
		return driver.ListResult{Records: all}, nil
	}
	return driver.ListResult{Records: all[:p.Limit], Next: all[p.Limit-1].Key.String()}, nil
}

// Resolve implements [driver.Resolver].
func (s *Store) Resolve(_ context.Context, p driver.ResolveParams) (driver.ResolveResult, error) {
	if err := p.Validate(); err != nil {
		return driver.ResolveResult{}, err
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	now := time.Now()
	r := s.Records[p.Key]
	state, end := r.At(now)
	live := state == driver.StateClaimed && now.Before(end)
	switch {
	case state == 0 || r.over(now):
		return driver.ResolveResult{}, nil
	case r.Format > p.Format:
		return driver.ResolveResult{}, driver.ErrNewerFormat
	case r.Fence != p.Fence || live || p.Action != driver.ResolveForget && state != driver.StateUncertain:
		res := driver.ResolveResult{State: state, Fence: r.Fence}
		if live {
			res.LeaseLeft = end.Sub(now)
		}
		return res, nil
	}
	s.Records[p.Key] = r.resolved(now, p)
	return driver.ResolveResult{Applied: true}, nil
}

func (r Record) resolved(now time.Time, p driver.ResolveParams) Record {
	r.Token = driver.Token{}
	switch p.Action {
	case driver.ResolveNotRun:
		return r.stub(now, 0)
	case driver.ResolveForget:
		return Record{Fence: r.Fence}
	default:
		r.State, r.Outcome, r.EndedAt, r.Format = driver.StateCompleted, p.Outcome, now, p.Format
		r.Retention, r.Tombstone = p.Retention, p.Tombstone
		return r
	}
}

// Purge implements [driver.Purger].
func (s *Store) Purge(_ context.Context, p driver.PurgeParams) (driver.PurgeResult, error) {
	if p.Limit < 1 {
		return driver.PurgeResult{}, fmt.Errorf("%w: purging %d records", driver.ErrInvalid, p.Limit)
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	var res driver.PurgeResult
	for k, r := range s.Records {
		if res.Purged < p.Limit && r.over(time.Now()) {
			delete(s.Records, k)
			res.Purged++
		}
	}
	return res, nil
}
