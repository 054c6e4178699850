package conformance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/idem-go/idem/conformance/internal/tiny"
	"github.com/idem-go/idem/driver"
)

type claimNext = func(driver.ClaimParams) (driver.ClaimResult, error)

// opaque is a driver without its abilities.
type opaque struct{ driver.Driver }

var capabilityFaults = []fault{
	{name: "names no contract version", caps: func(c *driver.Capabilities) { c.Contract = 0 }},
	{name: "declares tombstones and reconciling no longer", caps: func(c *driver.Capabilities) { c.Features = 0 }},
	{name: "transacts undeclared", caps: func(c *driver.Capabilities) {
		c.Guarantees = driver.GuaranteeSet(driver.AtLeastOnce, driver.AtMostOnce)
	}},
	{name: "declares ExactlyOnce in vain", harness: func(h *Harness) {
		open := h.Open
		h.Open = func(t testing.TB) driver.Driver { return opaque{open(t)} }
	}},
	{
		name: "peers have data of their own", caps: func(c *driver.Capabilities) { c.Shared = true },
		harness: func(h *Harness) {
			h.Peer = func(t testing.TB, _ driver.Driver) driver.Driver { return h.Open(t) }
		},
	},
}

var claimFaults = []fault{
	{name: "counts attempts from 0", claim: func(_ *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		res, err := next(p)
		res.Attempt--
		return res, err
	}},
	{name: "grants on a live lease", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		m.tamper(p.Key, func(r *tiny.Record) {
			if r.State == driver.StateClaimed && r.Token != p.Token {
				r.LeaseEnd, r.OnLapse = time.Time{}, driver.TakeOver
			}
		})
		return next(p)
	}},
	{name: "does not recognise its own token", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		if r := m.stored(p.Key); r.State == driver.StateClaimed && r.Token == p.Token {
			p.Token = newToken()
		}
		return next(p)
	}},
	{name: "prolongs the lease of a claim sent again", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		m.tamper(p.Key, func(r *tiny.Record) {
			if r.Token == p.Token {
				r.LeaseEnd = time.Now().Add(p.Lease)
			}
		})
		return next(p)
	}},
	{name: "calls every outcome the caller's own", claim: func(_ *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		res, err := next(p)
		res.Own = res.Own || res.Decision == driver.DecisionCompleted
		return res, err
	}},
	{name: "tells losers for ever that the key is in flight", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		res, err := next(p)
		if res.Decision == driver.DecisionInFlight || m.seen[p.Token] > 0 {
			m.seen[p.Token]++
			res.Decision = driver.DecisionInFlight
		}
		return res, err
	}},
	{name: "hides the fingerprint of a key in flight", claim: func(_ *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		res, err := next(p)
		if res.Decision == driver.DecisionInFlight {
			res.Fingerprint = nil
		}
		return res, err
	}},
	{name: "grants a late claim of a released token", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		m.tamper(p.Key, func(r *tiny.Record) {
			if r.State == driver.StateReleased {
				r.Token = driver.Token{}
			}
		})
		return next(p)
	}},
	{name: "takes a lease of zero for a short one", claim: func(_ *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		p.Lease = max(p.Lease, 1)
		return next(p)
	}},
	{name: "grants one key at a time", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		m.Mu.Lock()
		for k, r := range m.Records {
			if k != p.Key && r.State == driver.StateClaimed && !lapsed(r) {
				m.Mu.Unlock()
				return driver.ClaimResult{Decision: driver.DecisionInFlight}, nil
			}
		}
		m.Mu.Unlock()
		return next(p)
	}},
	{name: "hides what cancelled a call", ctx: func(ctx context.Context) (context.Context, error) {
		if ctx.Err() != nil {
			return nil, errors.New("the call failed")
		}
		return ctx, nil
	}},
	{name: "lets a failed call steal the key", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		res, err := next(p)
		if errors.Is(err, context.Canceled) {
			p.Token = newToken()
			m.tamper(p.Key, func(r *tiny.Record) { r.Token = p.Token })
			_, _ = m.Store.Claim(context.Background(), p)
		}
		return res, err
	}},
	{name: "takes over a newer format", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		m.tamper(p.Key, func(r *tiny.Record) { r.Format = min(r.Format, p.Format) })
		return next(p)
	}},
	{name: "refuses an older format", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		if r := m.stored(p.Key); r.Format != 0 && r.Format < p.Format {
			return driver.ClaimResult{}, driver.ErrCorrupt
		}
		return next(p)
	}},
}

type (
	completeNext = func(driver.CompleteParams) (driver.CompleteResult, error)
	releaseNext  = func(driver.ReleaseParams) (driver.ReleaseResult, error)
	renewNext    = func(driver.RenewParams) (driver.RenewResult, error)
)

var settlingFaults = []fault{
	{name: "overwrites the outcome", complete: func(m *mutant, p driver.CompleteParams, next completeNext) (driver.CompleteResult, error) {
		m.tamper(p.Key, func(r *tiny.Record) {
			if r.Token == p.Token && r.State == driver.StateCompleted {
				r.State = driver.StateClaimed
			}
		})
		return next(p)
	}},
	{name: "completes with any token", complete: func(m *mutant, p driver.CompleteParams, next completeNext) (driver.CompleteResult, error) {
		if r := m.stored(p.Key); r.State == driver.StateClaimed {
			p.Token = r.Token
		}
		return next(p)
	}},
	{name: "completes a released claim", complete: func(m *mutant, p driver.CompleteParams, next completeNext) (driver.CompleteResult, error) {
		m.tamper(p.Key, func(r *tiny.Record) {
			if r.State == driver.StateReleased && r.Token == p.Token {
				r.State = driver.StateClaimed
			}
		})
		return next(p)
	}},
	{name: "completes what is not there", complete: func(m *mutant, p driver.CompleteParams, next completeNext) (driver.CompleteResult, error) {
		if m.stored(p.Key).State == 0 {
			return driver.CompleteResult{}, nil
		}
		return next(p)
	}},
	{name: "completes with a retention of zero", complete: func(_ *mutant, p driver.CompleteParams, next completeNext) (driver.CompleteResult, error) {
		p.Retention = max(p.Retention, 1)
		return next(p)
	}},
	{name: "loses the fingerprint at the completion", complete: func(m *mutant, p driver.CompleteParams, next completeNext) (driver.CompleteResult, error) {
		res, err := next(p)
		m.tamper(p.Key, func(r *tiny.Record) { r.Fingerprint = nil })
		return res, err
	}},
	{name: "releases once only", release: func(m *mutant, p driver.ReleaseParams, next releaseNext) (driver.ReleaseResult, error) {
		if m.stored(p.Key).State == driver.StateReleased {
			return driver.ReleaseResult{}, driver.ErrLost
		}
		return next(p)
	}},
	{name: "deletes the record at the release", release: func(m *mutant, p driver.ReleaseParams, next releaseNext) (driver.ReleaseResult, error) {
		res, err := next(p)
		if err == nil {
			m.remove(p.Key)
		}
		return res, err
	}},
	{name: "keeps the fingerprint at the release", release: func(m *mutant, p driver.ReleaseParams, next releaseNext) (driver.ReleaseResult, error) {
		before := m.stored(p.Key).Fingerprint
		res, err := next(p)
		m.tamper(p.Key, func(r *tiny.Record) { r.Fingerprint = before })
		return res, err
	}},
	{name: "renews with any token", renew: func(m *mutant, p driver.RenewParams, next renewNext) (driver.RenewResult, error) {
		if r := m.stored(p.Key); r.State != 0 {
			p.Token = r.Token
		}
		return next(p)
	}},
	{name: "renews a completed claim", renew: func(m *mutant, p driver.RenewParams, next renewNext) (driver.RenewResult, error) {
		if m.stored(p.Key).State == driver.StateCompleted {
			return driver.RenewResult{LeaseLeft: p.Lease}, nil
		}
		return next(p)
	}},
	{name: "renews the first attempt only", renew: func(m *mutant, p driver.RenewParams, next renewNext) (driver.RenewResult, error) {
		if m.stored(p.Key).Attempt > 1 {
			p.Lease = 1
		}
		return next(p)
	}},
	{name: "shortens at a renewal", renew: func(m *mutant, p driver.RenewParams, next renewNext) (driver.RenewResult, error) {
		m.tamper(p.Key, func(r *tiny.Record) {
			if r.Token == p.Token {
				r.LeaseEnd = time.Time{}
			}
		})
		return next(p)
	}},
}
