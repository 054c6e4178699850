package conformance

import (
	"time"

	"github.com/idem-go/idem/conformance/internal/tiny"
	"github.com/idem-go/idem/driver"
)

type purgeNext = func(driver.PurgeParams) (driver.PurgeResult, error)

var expiryFaults = []fault{
	{name: "ignores the retention", complete: func(_ *mutant, p driver.CompleteParams, next completeNext) (driver.CompleteResult, error) {
		if p.Retention > 0 {
			p.Retention = driver.RetainForever
		}
		return next(p)
	}},
	{name: "counts the retention from the claim", complete: func(m *mutant, p driver.CompleteParams, next completeNext) (driver.CompleteResult, error) {
		res, err := next(p)
		if err == nil {
			m.tamper(p.Key, func(r *tiny.Record) { r.EndedAt = r.ClaimedAt })
		}
		return res, err
	}},
	{name: "retains for 20 years at most", complete: func(_ *mutant, p driver.CompleteParams, next completeNext) (driver.CompleteResult, error) {
		p.Retention = min(p.Retention, 20*365*24*time.Hour)
		return next(p)
	}},
	{name: "keeps no tombstones", complete: func(_ *mutant, p driver.CompleteParams, next completeNext) (driver.CompleteResult, error) {
		p.Tombstone = min(p.Tombstone, 0)
		return next(p)
	}},
	{name: "keeps the outcome with the tombstone", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		res, err := next(p)
		if res.Decision == driver.DecisionExpired {
			res.Outcome = m.stored(p.Key).Outcome
		}
		return res, err
	}},
	{name: "keeps stubs no longer than it is told", release: func(m *mutant, p driver.ReleaseParams, next releaseNext) (driver.ReleaseResult, error) {
		res, err := next(p)
		if err == nil {
			m.tamper(p.Key, func(r *tiny.Record) { r.Retention = p.Keep })
		}
		return res, err
	}},
	{
		name: "deletes a claim that follows on an expired record",
		complete: func(m *mutant, p driver.CompleteParams, next completeNext) (driver.CompleteResult, error) {
			m.seen[p.Key]++
			return next(p)
		},
		claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
			res, err := next(p)
			if res.Decision == driver.DecisionClaimed && m.seen[p.Key] > 0 {
				m.remove(p.Key)
			}
			return res, err
		},
	},
	{name: "purges live claims", purge: func(m *mutant, p driver.PurgeParams, next purgeNext) (driver.PurgeResult, error) {
		m.purgeState(driver.StateClaimed, 0)
		return next(p)
	}},
	{name: "purges what has lapsed too early", purge: func(m *mutant, p driver.PurgeParams, next purgeNext) (driver.PurgeResult, error) {
		m.purgeState(driver.StateClaimed, long+time.Minute)
		return next(p)
	}},
	{name: "purges uncertain records", purge: func(m *mutant, p driver.PurgeParams, next purgeNext) (driver.PurgeResult, error) {
		m.purgeState(driver.StateUncertain, driver.FenceMemory)
		return next(p)
	}},
	{name: "purges completed records by their age", purge: func(m *mutant, p driver.PurgeParams, next purgeNext) (driver.PurgeResult, error) {
		m.purgeState(driver.StateCompleted, driver.FenceMemory)
		return next(p)
	}},
	{name: "purges tombstones", purge: func(m *mutant, p driver.PurgeParams, next purgeNext) (driver.PurgeResult, error) {
		m.purgeState(driver.StateExpired, 0)
		return next(p)
	}},
	{name: "purges nothing", purge: func(*mutant, driver.PurgeParams, purgeNext) (driver.PurgeResult, error) {
		return driver.PurgeResult{}, nil
	}},
	{name: "purges without a limit", purge: func(_ *mutant, p driver.PurgeParams, next purgeNext) (driver.PurgeResult, error) {
		p.Limit = 1000
		return next(p)
	}},
}

// purgeState deletes what has the state and was claimed longer ago than age.
func (m *mutant) purgeState(state driver.State, age time.Duration) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	for k, r := range m.Records {
		if now, _ := r.At(time.Now()); now == state && time.Since(r.ClaimedAt) >= age {
			delete(m.Records, k)
		}
	}
}
