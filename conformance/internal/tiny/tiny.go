// Package tiny is a small driver: a map of records behind a mutex, with
// everything that the contract knows but batches and notifications. It shows
// what a driver has to do, and the suite's tests break it on purpose, which is
// why its records are open. It is not bounded; drivers/memory is the one to use.
package tiny

import (
	"context"
	"sync"
	"time"

	"github.com/idem-go/idem/driver"
)

// Precision is the clock precision that the driver declares.
const Precision = time.Microsecond

// Record is a record as it is stored.
type Record struct {
	Token       driver.Token
	State       driver.State // as written: a lapse or an end is not
	Guarantee   driver.Guarantee
	OnLapse     driver.OnLapse
	Fence       int64
	Generation  int64
	Attempt     int
	Format      int
	Fingerprint []byte
	Outcome     []byte
	ClaimedAt   time.Time
	LeaseEnd    time.Time
	EndedAt     time.Time // the terminal transition or the release
	Retention   time.Duration
	Tombstone   time.Duration
	InTx        bool // an open transaction has changed it
}

// Store is the driver. Its fields are guarded by Mu.
type Store struct {
	Mu      sync.Mutex
	Records map[driver.Key]Record
	Effects map[string]int // committed
	Cuts    int            // how often connections were cut

	MaxOutcome int // as in [driver.Capabilities]; set before the first use
}

var (
	_ driver.Driver     = (*Store)(nil)
	_ driver.Transactor = (*Store)(nil)
	_ driver.Inspector  = (*Store)(nil)
	_ driver.Lister     = (*Store)(nil)
	_ driver.Resolver   = (*Store)(nil)
	_ driver.Purger     = (*Store)(nil)
)

// New returns an empty store.
func New() *Store {
	return &Store{Records: make(map[driver.Key]Record), Effects: make(map[string]int)}
}

// Capabilities implements [driver.Driver].
func (s *Store) Capabilities() driver.Capabilities {
	return driver.Capabilities{
		Contract:        driver.ContractVersion,
		Name:            "tiny",
		Guarantees:      driver.GuaranteeSet(driver.AtLeastOnce, driver.AtMostOnce, driver.ExactlyOnce),
		InFlightVisible: true,
		MaxOutcome:      s.MaxOutcome,
		ClockPrecision:  Precision,
		Features:        driver.FeatureTombstone | driver.FeatureReconcile,
	}
}

// Claim implements [driver.Driver].
func (s *Store) Claim(ctx context.Context, p driver.ClaimParams) (driver.ClaimResult, error) {
	if err := p.Validate(); err != nil {
		return driver.ClaimResult{}, err
	}
	if err := ctx.Err(); err != nil {
		return driver.ClaimResult{}, err
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.claim(time.Now(), p)
}

func (s *Store) claim(now time.Time, p driver.ClaimParams) (driver.ClaimResult, error) {
	r := s.Records[p.Key]
	state, end := r.At(now)
	own := r.Token == p.Token
	switch {
	case r.InTx:
		return r.answer(now, driver.DecisionInFlight), nil
	case r.Format > p.Format:
		return driver.ClaimResult{}, driver.ErrNewerFormat
	case own && r.State == driver.StateClaimed:
		res := r.answer(now, driver.DecisionClaimed)
		res.Own = true
		return res, nil
	case own && r.State == driver.StateReleased:
		return driver.ClaimResult{}, driver.ErrLost
	case state == 0:
		return s.grant(now, p, Record{Fence: r.Fence}), nil
	case state == driver.StateReleased,
		state == driver.StateUncertain && p.Over == r.Fence,
		state == driver.StateClaimed && !now.Before(end) && r.takeable(now, p):
		return s.grant(now, p, r), nil
	}
	res := r.answer(now, decisions[state])
	res.Own = own
	return res, nil
}

var decisions = map[driver.State]driver.Decision{
	driver.StateClaimed:   driver.DecisionInFlight,
	driver.StateCompleted: driver.DecisionCompleted,
	driver.StateUncertain: driver.DecisionUncertain,
	driver.StateExpired:   driver.DecisionExpired,
}

func (r Record) takeable(now time.Time, p driver.ClaimParams) bool {
	return driver.SameFingerprint(r.Fingerprint, p.Fingerprint) || now.Sub(r.LeaseEnd) > driver.FenceMemory
}

// grant stores the claim, which follows on the record before.
func (s *Store) grant(now time.Time, p driver.ClaimParams, before Record) driver.ClaimResult {
	r := Record{
		Token: p.Token, State: driver.StateClaimed, Guarantee: p.Guarantee, OnLapse: p.OnLapse,
		Fence:      max(before.Fence+1, now.UnixMicro()),
		Generation: before.Generation, Attempt: before.Attempt + 1,
		Format: p.Format, Fingerprint: p.Fingerprint,
		ClaimedAt: now, LeaseEnd: now.Add(driver.RoundUp(p.Lease, Precision)),
		Retention: p.Retention, Tombstone: p.Tombstone,
	}
	if before.State == 0 {
		r.Generation = r.Fence
	}
	if len(r.Fingerprint) == 0 {
		r.Fingerprint = before.Fingerprint
	}
	s.Records[p.Key] = r
	res := r.answer(now, driver.DecisionClaimed)
	res.Fingerprint = before.Fingerprint
	res.TookOver = before.State != 0 && before.State != driver.StateReleased
	return res
}

func (r Record) answer(now time.Time, d driver.Decision) driver.ClaimResult {
	res := driver.ClaimResult{
		Decision: d, Fence: r.Fence, Generation: r.Generation, Attempt: r.Attempt, Fingerprint: r.Fingerprint,
		OnLapse: r.OnLapse, Format: r.Format, ClaimedAt: r.ClaimedAt, DecidedAt: now,
	}
	if d == driver.DecisionClaimed || d == driver.DecisionInFlight {
		res.LeaseLeft = max(r.LeaseEnd.Sub(now), 0)
		return res
	}
	if d == driver.DecisionCompleted {
		res.Outcome = r.Outcome
	}
	_, end := r.At(now)
	res.LifeLeft = left(now, end)
	res.CompletedAt = r.ended()
	return res
}

// Complete implements [driver.Driver].
func (s *Store) Complete(ctx context.Context, p driver.CompleteParams) (driver.CompleteResult, error) {
	if err := p.Validate(); err != nil {
		return driver.CompleteResult{}, err
	}
	if err := ctx.Err(); err != nil {
		return driver.CompleteResult{}, err
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.complete(time.Now(), p)
}

func (s *Store) complete(now time.Time, p driver.CompleteParams) (driver.CompleteResult, error) {
	r := s.Records[p.Key]
	switch {
	case r.Token != p.Token || r.State == driver.StateReleased:
		return driver.CompleteResult{}, driver.ErrLost
	case s.MaxOutcome > 0 && len(p.Outcome) > s.MaxOutcome:
		return driver.CompleteResult{}, driver.ErrTooLarge
	}
	already := r.State != driver.StateClaimed
	if !already {
		r.State, r.Outcome, r.EndedAt, r.Format = p.To, p.Outcome, now, p.Format
		r.Retention, r.Tombstone = p.Retention, p.Tombstone
		s.Records[p.Key] = r
	}
	return driver.CompleteResult{
		CompletedAt: r.EndedAt, LifeLeft: left(now, after(r.EndedAt, r.Retention)), Already: already,
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
	s.Mu.Lock()
	defer s.Mu.Unlock()
	r := s.Records[p.Key]
	switch {
	case r.Token != p.Token || r.State != driver.StateClaimed && r.State != driver.StateReleased:
		return driver.ReleaseResult{}, driver.ErrLost
	case r.State == driver.StateClaimed:
		s.Records[p.Key] = r.stub(time.Now(), p.Keep)
	}
	return driver.ReleaseResult{}, nil
}

func (r Record) stub(now time.Time, keep time.Duration) Record {
	return Record{
		Token: r.Token, State: driver.StateReleased, Guarantee: r.Guarantee, OnLapse: r.OnLapse,
		Fence: r.Fence, Generation: r.Generation, Attempt: r.Attempt, Format: r.Format,
		ClaimedAt: r.ClaimedAt, EndedAt: now, Retention: max(keep, driver.FenceMemory),
	}
}

// Renew implements [driver.Driver].
func (s *Store) Renew(ctx context.Context, p driver.RenewParams) (driver.RenewResult, error) {
	if err := p.Validate(); err != nil {
		return driver.RenewResult{}, err
	}
	if err := ctx.Err(); err != nil {
		return driver.RenewResult{}, err
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	r := s.Records[p.Key]
	if r.Token != p.Token || r.State != driver.StateClaimed {
		return driver.RenewResult{}, driver.ErrLost
	}
	now := time.Now()
	if end := now.Add(driver.RoundUp(p.Lease, Precision)); end.After(r.LeaseEnd) {
		r.LeaseEnd = end
		s.Records[p.Key] = r
	}
	return driver.RenewResult{LeaseLeft: max(r.LeaseEnd.Sub(now), 0)}, nil
}
