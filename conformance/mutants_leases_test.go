package conformance

import (
	"bytes"
	"time"

	"github.com/idem-go/idem/conformance/internal/tiny"
	"github.com/idem-go/idem/driver"
)

var leaseFaults = []fault{
	{name: "counts leases in whole seconds", claim: func(_ *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		p.Lease = driver.RoundUp(p.Lease, time.Second)
		return next(p)
	}},
	{name: "ends leases early", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		res, err := next(p)
		if res.Decision == driver.DecisionClaimed && !res.Own {
			m.tamper(p.Key, func(r *tiny.Record) { r.LeaseEnd = r.LeaseEnd.Add(-p.Lease / 10) })
		}
		return res, err
	}},
	{name: "rounds short leases down to none", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		res, err := next(p)
		if err == nil && p.Lease < time.Millisecond {
			m.tamper(p.Key, func(r *tiny.Record) { r.LeaseEnd = r.ClaimedAt })
			res.LeaseLeft = 0
		}
		return res, err
	}},
	{name: "renews without effect", renew: func(m *mutant, p driver.RenewParams, next renewNext) (driver.RenewResult, error) {
		before := m.stored(p.Key).LeaseEnd
		res, err := next(p)
		m.tamper(p.Key, func(r *tiny.Record) { r.LeaseEnd = before })
		return res, err
	}},
	{name: "renews for ever", renew: func(m *mutant, p driver.RenewParams, next renewNext) (driver.RenewResult, error) {
		res, err := next(p)
		if err == nil {
			m.tamper(p.Key, func(r *tiny.Record) { r.LeaseEnd = r.LeaseEnd.Add(time.Hour) })
		}
		return res, err
	}},
	{name: "refuses the completion after the lapse", complete: func(m *mutant, p driver.CompleteParams, next completeNext) (driver.CompleteResult, error) {
		if lapsed(m.stored(p.Key)) {
			return driver.CompleteResult{}, driver.ErrLost
		}
		return next(p)
	}},
	{name: "refuses the renewal after the lapse", renew: func(m *mutant, p driver.RenewParams, next renewNext) (driver.RenewResult, error) {
		if lapsed(m.stored(p.Key)) {
			return driver.RenewResult{}, driver.ErrLost
		}
		return next(p)
	}},
	{name: "forgets its own token after the lapse", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		m.tamper(p.Key, func(r *tiny.Record) {
			if lapsed(*r) && r.Token == p.Token {
				r.Token = driver.Token{1}
			}
		})
		return next(p)
	}},
}

var takeoverFaults = []fault{
	{name: "never takes over", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		if r := m.stored(p.Key); lapsed(r) && r.OnLapse == driver.TakeOver && r.Token != p.Token {
			return driver.ClaimResult{Decision: driver.DecisionInFlight, Fingerprint: r.Fingerprint}, nil
		}
		return next(p)
	}},
	{name: "starts a new generation at a takeover", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		res, err := next(p)
		if res.TookOver {
			m.tamper(p.Key, func(r *tiny.Record) { r.Generation, r.Attempt = r.Fence, 1 })
			res.Generation, res.Attempt = res.Fence, 1
		}
		return res, err
	}},
	{name: "hides takeovers", claim: func(_ *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		res, err := next(p)
		res.TookOver = false
		return res, err
	}},
	{name: "recognises every former token", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		if r := m.stored(p.Key); m.seen[p.Token] > 0 && r.State != driver.StateReleased {
			p.Token = r.Token
		}
		m.seen[p.Token]++
		return next(p)
	}},
	{name: "takes over whatever the fingerprint", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		if lapsed(m.stored(p.Key)) {
			p.Fingerprint = nil
		}
		return next(p)
	}},
	{name: "compares fingerprints across versions", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		if r := m.stored(p.Key); lapsed(r) && r.OnLapse == driver.TakeOver && len(p.Fingerprint) > 0 && !bytes.Equal(p.Fingerprint, r.Fingerprint) {
			return driver.ClaimResult{Decision: driver.DecisionInFlight, Fingerprint: r.Fingerprint}, nil
		}
		return next(p)
	}},
	{name: "drops the fingerprint at a takeover without one", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		res, err := next(p)
		if res.TookOver {
			m.tamper(p.Key, func(r *tiny.Record) { r.Fingerprint = p.Fingerprint })
		}
		return res, err
	}},
}

var fencingFaults = []fault{
	{name: "counts fences from 1", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		before := m.stored(p.Key)
		res, err := next(p)
		if res.Decision != driver.DecisionClaimed || res.Own {
			return res, err
		}
		res.Fence = before.Fence + 1
		if res.Attempt == 1 {
			res.Generation = res.Fence
		}
		m.tamper(p.Key, func(r *tiny.Record) { r.Fence, r.Generation = res.Fence, res.Generation })
		return res, err
	}},
	{name: "keeps the fence at a takeover", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		before := m.stored(p.Key).Fence
		res, err := next(p)
		if res.TookOver {
			res.Fence = before
			m.tamper(p.Key, func(r *tiny.Record) { r.Fence = before })
		}
		return res, err
	}},
	{name: "goes on with a generation that has ended", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		before := m.stored(p.Key)
		res, err := next(p)
		if res.Decision == driver.DecisionClaimed && before.State == driver.StateCompleted {
			res.Generation, res.Attempt = before.Generation, before.Attempt+1
			m.tamper(p.Key, func(r *tiny.Record) { r.Generation, r.Attempt = res.Generation, res.Attempt })
		}
		return res, err
	}},
}

var guardFaults = []fault{
	{name: "calls a live guard uncertain", claim: func(_ *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		res, err := next(p)
		if res.Decision == driver.DecisionInFlight && res.OnLapse == driver.Uncertain {
			res.Decision = driver.DecisionUncertain
		}
		return res, err
	}},
	{name: "takes over an uncertain record", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		p.Over = m.stored(p.Key).Fence
		return next(p)
	}},
	{name: "lets the claimer's rule win", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		m.tamper(p.Key, func(r *tiny.Record) {
			if lapsed(*r) {
				r.OnLapse, r.Retention = p.OnLapse, driver.RetainForever
			}
		})
		return next(p)
	}},
	{name: "completes to uncertain as if released", complete: func(m *mutant, p driver.CompleteParams, next completeNext) (driver.CompleteResult, error) {
		res, err := next(p)
		if err == nil && p.To == driver.StateUncertain {
			m.tamper(p.Key, func(r *tiny.Record) { r.State = driver.StateReleased })
		}
		return res, err
	}},
	{name: "counts a guard's retention from its claim", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		if p.OnLapse == driver.Uncertain && p.Retention > 0 && p.Retention != driver.RetainForever {
			p.Retention = max(p.Retention-p.Lease, 1)
		}
		return next(p)
	}},
	{name: "keeps no tombstone of a guard", claim: func(_ *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		p.Tombstone = 0
		return next(p)
	}},
	{name: "ignores Over", claim: func(_ *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		p.Over = 0
		return next(p)
	}},
	{name: "takes any fence in Over", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		if p.Over != 0 {
			p.Over = m.stored(p.Key).Fence
		}
		return next(p)
	}},
	{name: "reconciles what is not uncertain", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		m.tamper(p.Key, func(r *tiny.Record) {
			if p.Over == r.Fence {
				r.State = driver.StateUncertain
			}
		})
		return next(p)
	}},
	{name: "grants one Over to many", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		if m.seen[p.Over] > 0 {
			m.tamper(p.Key, func(r *tiny.Record) { r.State, p.Over = driver.StateUncertain, r.Fence })
			return next(p)
		}
		res, err := next(p)
		if res.Decision == driver.DecisionClaimed && p.Over != 0 {
			m.seen[p.Over]++
		}
		return res, err
	}},
}
