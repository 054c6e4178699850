package conformance

import (
	"github.com/idem-go/idem/conformance/internal/tiny"
	"github.com/idem-go/idem/driver"
)

type resolveNext = func(driver.ResolveParams) (driver.ResolveResult, error)

var resolvingFaults = []fault{
	{name: "resolves whatever the fence", resolve: func(m *mutant, p driver.ResolveParams, next resolveNext) (driver.ResolveResult, error) {
		p.Fence = m.stored(p.Key).Fence
		return next(p)
	}},
	{name: "resolves a live claim", resolve: func(m *mutant, p driver.ResolveParams, next resolveNext) (driver.ResolveResult, error) {
		m.tamper(p.Key, func(r *tiny.Record) {
			if r.State == driver.StateClaimed && !lapsed(*r) && p.Fence == r.Fence {
				r.State = driver.StateUncertain
			}
		})
		return next(p)
	}},
	{name: "resolves a completed record", resolve: func(m *mutant, p driver.ResolveParams, next resolveNext) (driver.ResolveResult, error) {
		m.tamper(p.Key, func(r *tiny.Record) {
			if r.State == driver.StateCompleted && p.Action != driver.ResolveForget {
				r.State = driver.StateUncertain
			}
		})
		return next(p)
	}},
	{name: "leaves the old owner its token", resolve: func(m *mutant, p driver.ResolveParams, next resolveNext) (driver.ResolveResult, error) {
		before := m.stored(p.Key).Token
		res, err := next(p)
		if res.Applied {
			m.tamper(p.Key, func(r *tiny.Record) { r.Token = before })
		}
		return res, err
	}},
	{name: "forgets what did not run", resolve: func(_ *mutant, p driver.ResolveParams, next resolveNext) (driver.ResolveResult, error) {
		if p.Action == driver.ResolveNotRun {
			p.Action = driver.ResolveForget
		}
		return next(p)
	}},
	{name: "forgets the fence too", resolve: func(m *mutant, p driver.ResolveParams, next resolveNext) (driver.ResolveResult, error) {
		res, err := next(p)
		if res.Applied && p.Action == driver.ResolveForget {
			m.remove(p.Key)
		}
		return res, err
	}},
	{name: "does not forget a lapsed lease", resolve: func(m *mutant, p driver.ResolveParams, next resolveNext) (driver.ResolveResult, error) {
		if r := m.stored(p.Key); lapsed(r) && r.OnLapse == driver.TakeOver {
			return driver.ResolveResult{State: driver.StateClaimed, Fence: r.Fence}, nil
		}
		return next(p)
	}},
	{name: "resolves what is not there", resolve: func(m *mutant, p driver.ResolveParams, next resolveNext) (driver.ResolveResult, error) {
		res, err := next(p)
		res.Applied = res.Applied || m.stored(p.Key).State == 0
		return res, err
	}},
	{name: "resolves a newer format", resolve: func(m *mutant, p driver.ResolveParams, next resolveNext) (driver.ResolveResult, error) {
		p.Format = max(p.Format, m.stored(p.Key).Format)
		return next(p)
	}},
}
