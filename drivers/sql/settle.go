package idemsql

import (
	"bytes"
	"context"
	"fmt"

	"github.com/idem-go/idem/driver"
)

// Complete implements [driver.Driver] with one statement; one that does not
// find its claim needs a second to see why.
func (s *Store) Complete(ctx context.Context, p driver.CompleteParams) (driver.CompleteResult, error) {
	if err := p.Validate(); err != nil {
		return driver.CompleteResult{}, err
	}
	if err := s.alone(ctx); err != nil {
		return driver.CompleteResult{}, err
	}
	if err := s.learn(ctx, s.db); err != nil {
		return driver.CompleteResult{}, s.failed("complete", err)
	}
	var res driver.CompleteResult
	err := s.writing(ctx, func() (err error) {
		res, err = session{Store: s}.complete(ctx, &p)
		return err
	})
	if err != nil {
		return driver.CompleteResult{}, s.failed("complete", err)
	}
	return res, nil
}

func (s session) complete(ctx context.Context, p *driver.CompleteParams) (driver.CompleteResult, error) {
	if len(p.Outcome) > s.maxOutcome() {
		return driver.CompleteResult{}, fmt.Errorf("%w: %d bytes", driver.ErrTooLarge, len(p.Outcome))
	}
	a := s.completeArgs(p)
	id := stComplete
	if s.locks {
		id, a[pLock] = stUnlockComplete, s.dialect.lock(s.config.table, p.Key)
	}
	now, found, err := s.stamp(ctx, id, a)
	if err != nil {
		return driver.CompleteResult{}, err
	}
	if found {
		return s.completedAt(now, p), nil
	}
	r, err := s.owned(ctx, a, p.Token)
	if err != nil {
		return driver.CompleteResult{}, err
	}
	switch {
	case r.format > int64(p.Format):
		return driver.CompleteResult{}, driver.ErrNewerFormat
	case r.state != driver.StateCompleted && r.state != driver.StateUncertain:
		return driver.CompleteResult{}, driver.ErrLost
	}
	return driver.CompleteResult{
		CompletedAt: clock(r.endedAt.Int64),
		LifeLeft:    r.left(later(r.base(), r.retention)),
		Already:     true,
	}, nil
}

// completedAt answers a completion that took effect when the clock was now.
func (s *Store) completedAt(now int64, p *driver.CompleteParams) driver.CompleteResult {
	return driver.CompleteResult{CompletedAt: clock(now), LifeLeft: driver.RoundUp(p.Retention, s.dialect.unit)}
}

// owned reads the record and returns [driver.ErrLost] if it is not the token's.
func (s session) owned(ctx context.Context, a *args, token driver.Token) (*record, error) {
	r, err := s.read(ctx, a)
	if err != nil {
		return nil, err
	}
	if r == nil || !bytes.Equal(r.token, token[:]) {
		return nil, driver.ErrLost
	}
	return r, nil
}

// Release implements [driver.Driver].
func (s *Store) Release(ctx context.Context, p driver.ReleaseParams) (driver.ReleaseResult, error) {
	if err := p.Validate(); err != nil {
		return driver.ReleaseResult{}, err
	}
	if err := s.alone(ctx); err != nil {
		return driver.ReleaseResult{}, err
	}
	a := ownerArgs(p.Key, p.Token)
	kept := max(p.Keep, driver.FenceMemory)
	a[pRetention], a[pKeep] = s.dialect.micros(kept), s.dialect.keep(kept, 0)
	err := s.writing(ctx, func() error {
		_, found, err := session{Store: s}.stamp(ctx, stRelease, a)
		if found || err != nil {
			return err
		}
		r, err := session{Store: s}.owned(ctx, a, p.Token)
		if err == nil && r.state != driver.StateReleased {
			return driver.ErrLost
		}
		return err
	})
	if err != nil {
		return driver.ReleaseResult{}, s.failed("release", err)
	}
	return driver.ReleaseResult{}, nil
}

// Renew implements [driver.Driver].
func (s *Store) Renew(ctx context.Context, p driver.RenewParams) (driver.RenewResult, error) {
	if err := p.Validate(); err != nil {
		return driver.RenewResult{}, err
	}
	if err := s.alone(ctx); err != nil {
		return driver.RenewResult{}, err
	}
	var res driver.RenewResult
	err := s.writing(ctx, func() (err error) {
		res, err = session{Store: s, on: s.renewals}.renew(ctx, &p)
		return err
	})
	if err != nil {
		return driver.RenewResult{}, s.failed("renew", err)
	}
	return res, nil
}

func (s session) renew(ctx context.Context, p *driver.RenewParams) (driver.RenewResult, error) {
	a := ownerArgs(p.Key, p.Token)
	a[pLease] = s.dialect.us(p.Lease)
	left, found, err := s.stamp(ctx, stRenew, a)
	if err != nil {
		return driver.RenewResult{}, err
	}
	if found {
		return driver.RenewResult{LeaseLeft: duration(left)}, nil
	}
	return driver.RenewResult{}, s.notRenewed(ctx, a, p.Token)
}

// notRenewed is why a renewal found no row.
func (s session) notRenewed(ctx context.Context, a *args, token driver.Token) error {
	r, err := s.owned(ctx, a, token)
	if err != nil {
		return err
	}
	if err := r.check(); err != nil {
		return err
	}
	return driver.ErrLost
}
