package conformance

import (
	"time"

	"github.com/idem-go/idem/conformance/internal/tiny"
	"github.com/idem-go/idem/driver"
)

type (
	inspectNext = func(driver.InspectParams) (driver.InspectResult, error)
	listNext    = func(driver.ListParams) (driver.ListResult, error)
)

var operatingFaults = []fault{
	{name: "inspects what is written", inspect: func(m *mutant, p driver.InspectParams, next inspectNext) (driver.InspectResult, error) {
		res, err := next(p)
		if r := m.stored(p.Key); r.State != 0 {
			res.Found, res.Record.State = true, r.State
		}
		return res, err
	}},
	{name: "prolongs what it inspects", inspect: func(m *mutant, p driver.InspectParams, next inspectNext) (driver.InspectResult, error) {
		m.tamper(p.Key, func(r *tiny.Record) { r.Attempt++ })
		return next(p)
	}},
	{name: "shows another key", inspect: func(_ *mutant, p driver.InspectParams, next inspectNext) (driver.InspectResult, error) {
		res, err := next(p)
		res.Record.Key.ID += "?"
		return res, err
	}},
	{name: "lists the first page only", list: func(_ *mutant, p driver.ListParams, next listNext) (driver.ListResult, error) {
		res, err := next(p)
		res.Next = ""
		return res, err
	}},
	{name: "lists scopes by their start", list: func(m *mutant, p driver.ListParams, next listNext) (driver.ListResult, error) {
		scope := p.Scope
		p.Scope, p.Limit = "", 1000*p.Limit
		res, err := next(p)
		var some []driver.Record
		for _, r := range res.Records {
			if len(r.Key.Scope) >= len(scope) && r.Key.Scope[:len(scope)] == scope {
				some = append(some, r)
			}
		}
		res.Records = some
		return res, err
	}},
	{name: "lists by what is written", list: func(m *mutant, p driver.ListParams, next listNext) (driver.ListResult, error) {
		state := p.State
		p.State, p.Limit = 0, 1000*p.Limit
		res, err := next(p)
		var some []driver.Record
		for _, r := range res.Records {
			if r.State = m.stored(r.Key).State; state == 0 || r.State == state {
				some = append(some, r)
			}
		}
		res.Records = some
		return res, err
	}},
	{name: "lists pages of no records", list: func(_ *mutant, p driver.ListParams, next listNext) (driver.ListResult, error) {
		p.Limit = max(p.Limit, 1)
		return next(p)
	}},
	{name: "answers batches in another order", batch: func(n int, swap func(i, j int)) {
		if n < 8 { // where 8 race, chance decides whether it shows
			swap(0, n-1)
		}
	}},
	{name: "grants a whole batch", claim: func(m *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		if len(p.Key.ID) > 5 && p.Key.ID[:5] == "batch" {
			m.tamper(p.Key, func(r *tiny.Record) { r.LeaseEnd, r.OnLapse = time.Time{}, driver.TakeOver })
		}
		return next(p)
	}},
	{name: "tells watchers nothing", deaf: true},
	{name: "classifies errors that are not its own", kind: driver.KindDomain},
	{name: "overlaps nothing", overlaps: func(driver.OverlapParams) bool { return false }},
	{name: "overlaps everything", overlaps: func(driver.OverlapParams) bool { return true }},
}
