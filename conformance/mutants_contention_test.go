package conformance

import (
	"time"

	"github.com/idem-go/idem/conformance/internal/tiny"
	"github.com/idem-go/idem/driver"
)

// room is how many records a store has that evicts.
const room = 16

var contentionFaults = []fault{
	{name: "looks, then writes", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		seen := m.stored(p.Key)
		state, end := seen.At(time.Now())
		lapsed := state == driver.StateClaimed && !time.Now().Before(end)
		if (state == 0 || state == driver.StateReleased || lapsed) && seen.Token != p.Token {
			m.step.Unlock() // a rival comes between
			time.Sleep(time.Microsecond)
			m.step.Lock()
			m.tamper(p.Key, func(r *tiny.Record) { *r = seen })
		}
		return next(p)
	}},
	{name: "evicts live claims", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		res, err := next(p)
		m.Mu.Lock()
		defer m.Mu.Unlock()
		if len(m.Records) > room {
			oldest := p.Key
			for k, r := range m.Records {
				if r.Fence < m.Records[oldest].Fence || r.Fence == m.Records[oldest].Fence && k.String() < oldest.String() {
					oldest = k
				}
			}
			delete(m.Records, oldest)
		}
		return res, err
	}},
}
