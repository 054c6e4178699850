package idemsql

import (
	"context"
	"fmt"

	"github.com/idem-go/idem/driver"
)

// Resolve implements [driver.Resolver] with a read and, if the action applies,
// a write that checks that the record is still what was read.
func (s *Store) Resolve(ctx context.Context, p driver.ResolveParams) (driver.ResolveResult, error) {
	if err := p.Validate(); err != nil {
		return driver.ResolveResult{}, err
	}
	if err := s.alone(ctx); err != nil {
		return driver.ResolveResult{}, err
	}
	if err := s.learn(ctx, s.db); err != nil {
		return driver.ResolveResult{}, s.failed("resolve", err)
	}
	var res driver.ResolveResult
	err := s.writingOnce(ctx, func() (err error) {
		res, err = session{Store: s}.resolve(ctx, &p)
		return err
	})
	if err != nil {
		return driver.ResolveResult{}, s.failed("resolve", err)
	}
	return res, nil
}

func (s session) resolve(ctx context.Context, p *driver.ResolveParams) (driver.ResolveResult, error) {
	if len(p.Outcome) > s.maxOutcome() {
		return driver.ResolveResult{}, fmt.Errorf("%w: %d bytes", driver.ErrTooLarge, len(p.Outcome))
	}
	a := s.settleArgs(p)
	for range claimTries {
		r, err := s.read(ctx, a)
		if err != nil || r == nil {
			return driver.ResolveResult{}, err
		}
		if r.format > int64(p.Format) {
			return driver.ResolveResult{}, driver.ErrNewerFormat
		}
		if err := r.check(); err != nil {
			return driver.ResolveResult{}, err
		}
		from, until, applies := r.applies(p)
		if !applies {
			return r.unsettled(), nil
		}
		a[pFence], a[pState], a[pBase], a[pFrom], a[pUntil] = r.fence, int64(r.state), r.base(), from, until
		if _, done, err := s.stamp(ctx, stSettle, a); err != nil || done {
			return driver.ResolveResult{Applied: done}, err
		}
	}
	return driver.ResolveResult{}, fmt.Errorf("%w: the record changed %d times", driver.ErrConflict, claimTries)
}

// applies reports whether the action applies to the record, and between which times.
func (r *record) applies(p *driver.ResolveParams) (from, until int64, ok bool) {
	state, end := r.visible()
	if r.fence != p.Fence || state == 0 {
		return 0, 0, false
	}
	until = forever
	if p.Action != driver.ResolveForget {
		if state != driver.StateUncertain {
			return 0, 0, false
		}
		until = end
	}
	if r.state == driver.StateClaimed {
		if !r.lapsed() {
			return 0, 0, false
		}
		from = r.leaseEnd.Int64
	}
	return from, until, true
}

// unsettled is what the record is instead.
func (r *record) unsettled() driver.ResolveResult {
	state, _ := r.visible()
	if state == 0 {
		return driver.ResolveResult{}
	}
	res := driver.ResolveResult{State: state, Fence: r.fence}
	if state == driver.StateClaimed {
		res.LeaseLeft = r.left(r.leaseEnd.Int64)
	}
	return res
}

// settleArgs are what the record becomes. Its token is nobody's. A forgotten
// one is a stub that was past its keep when it came to be, and so remembers
// nothing but its fence.
func (s *Store) settleArgs(p *driver.ResolveParams) *args {
	a := ownerArgs(p.Key, driver.Token{})
	a[pFormat] = int64(p.Format)
	a[pTo], a[pRetention], a[pTombstone], a[pKeep] = int64(driver.StateReleased), fenceMemory, int64(0), fenceMemory
	switch p.Action {
	case driver.ResolveCompleted:
		a[pTo], a[pOutcome] = int64(driver.StateCompleted), blob(p.Outcome)
		a[pRetention], a[pTombstone] = s.dialect.micros(p.Retention), s.dialect.micros(p.Tombstone)
		a[pKeep] = s.dialect.keep(p.Retention, p.Tombstone)
	case driver.ResolveForget:
		a[pRetention] = int64(-1)
	case driver.ResolveNotRun:
	}
	return a
}
