package conformance

import (
	"context"
	"errors"

	"github.com/idem-go/idem/driver"
)

var wrapperCases = []testCase{
	{
		"wrappers/prefixed-keys-are-the-same-records",
		"Through a wrapper that changes keys, claims, inspection and resolution all see the same records, apart from those of the driver itself.",
		needs{leasesOrGuards, inspector, resolver}, prefixedKeys,
	},
	{
		"wrappers/prefixed-transactions-are-the-same-records",
		"Through a wrapper that changes keys, transactions and claims see the same records.",
		needs{inboxes, leasesOrGuards}, prefixedTransactions,
	},
}

// prefixed is a wrapper that gives its records a key space of their own.
type prefixed struct{ d driver.Driver }

func prefix(k driver.Key) driver.Key {
	return driver.Key{Scope: "prefix/" + k.Scope, ID: "prefix/" + k.ID}
}

func (w prefixed) Capabilities() driver.Capabilities { return w.d.Capabilities() }

func (w prefixed) Claim(ctx context.Context, p driver.ClaimParams) (driver.ClaimResult, error) {
	p.Key = prefix(p.Key)
	return w.d.Claim(ctx, p)
}

func (w prefixed) Complete(ctx context.Context, p driver.CompleteParams) (driver.CompleteResult, error) {
	p.Key = prefix(p.Key)
	return w.d.Complete(ctx, p)
}

func (w prefixed) Release(ctx context.Context, p driver.ReleaseParams) (driver.ReleaseResult, error) {
	p.Key = prefix(p.Key)
	return w.d.Release(ctx, p)
}

func (w prefixed) Renew(ctx context.Context, p driver.RenewParams) (driver.RenewResult, error) {
	p.Key = prefix(p.Key)
	return w.d.Renew(ctx, p)
}

func (w prefixed) Inspect(ctx context.Context, p driver.InspectParams) (driver.InspectResult, error) {
	i, ok := driver.As[driver.Inspector](w.d)
	if !ok {
		return driver.InspectResult{}, errors.ErrUnsupported
	}
	key := p.Key
	p.Key = prefix(key)
	res, err := i.Inspect(ctx, p)
	res.Record.Key = key
	return res, err
}

func (w prefixed) Resolve(ctx context.Context, p driver.ResolveParams) (driver.ResolveResult, error) {
	r, ok := driver.As[driver.Resolver](w.d)
	if !ok {
		return driver.ResolveResult{}, errors.ErrUnsupported
	}
	p.Key = prefix(p.Key)
	return r.Resolve(ctx, p)
}

func (w prefixed) Transact(ctx context.Context, p driver.TransactParams, fn driver.TransactFunc) (driver.TransactResult, error) {
	t, ok := driver.As[driver.Transactor](w.d)
	if !ok {
		return driver.TransactResult{}, errors.ErrUnsupported
	}
	p.Claim.Key = prefix(p.Claim.Key)
	return t.Transact(ctx, p, func(ctx context.Context, c driver.ClaimResult) (driver.CompleteParams, error) {
		done, err := fn(ctx, c)
		done.Key = prefix(done.Key)
		return done, err
	})
}

// wrapped is the suite of a case on the same data through a prefixing wrapper.
func (s *suite) wrapped() *suite {
	w := *s
	w.d = prefixed{s.d}
	return &w
}

func prefixedKeys(s *suite) {
	w := s.wrapped()
	p := s.caller()
	s.grant(p)
	inside := again(p)
	won := w.grant(inside)
	w.renew(inside, long)
	w.complete(doubt(inside))
	w.shows(inside, driver.StateUncertain)
	s.shows(p, driver.StateClaimed)
	w.resolved(inside, won.Fence, driver.ResolveCompleted)
	w.expect(driver.DecisionCompleted, again(p))
	s.expect(driver.DecisionInFlight, again(p))
	if k := prefix(p.Key); s.inspect(k).Record.Key != k {
		s.Errorf("the driver does not have the record of %q under the key that the wrapper gave", k)
	}
}

func prefixedTransactions(s *suite) {
	w := s.wrapped()
	id := newID()
	in := inbox(id)
	w.transact(in, w.effect(in, id))
	s.effects(id, 1)
	p := s.caller()
	p.Key = in.Key
	w.expect(driver.DecisionCompleted, again(p))
	s.grant(p)
}
