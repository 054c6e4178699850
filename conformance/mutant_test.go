package conformance

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem/conformance/internal/tiny"
	"github.com/idem-go/idem/driver"
)

// fault breaks one rule of a driver. Each function stands in front of the
// method of its name; next calls the sound one.
type fault struct {
	name string

	caps     func(c *driver.Capabilities)
	harness  func(h *Harness)
	claim    func(m *mutant, p driver.ClaimParams, next func(driver.ClaimParams) (driver.ClaimResult, error)) (driver.ClaimResult, error)
	complete func(m *mutant, p driver.CompleteParams, next func(driver.CompleteParams) (driver.CompleteResult, error)) (driver.CompleteResult, error)
	release  func(m *mutant, p driver.ReleaseParams, next func(driver.ReleaseParams) (driver.ReleaseResult, error)) (driver.ReleaseResult, error)
	renew    func(m *mutant, p driver.RenewParams, next func(driver.RenewParams) (driver.RenewResult, error)) (driver.RenewResult, error)
	resolve  func(m *mutant, p driver.ResolveParams, next func(driver.ResolveParams) (driver.ResolveResult, error)) (driver.ResolveResult, error)
	inspect  func(m *mutant, p driver.InspectParams, next func(driver.InspectParams) (driver.InspectResult, error)) (driver.InspectResult, error)
	list     func(m *mutant, p driver.ListParams, next func(driver.ListParams) (driver.ListResult, error)) (driver.ListResult, error)
	purge    func(m *mutant, p driver.PurgeParams, next func(driver.PurgeParams) (driver.PurgeResult, error)) (driver.PurgeResult, error)

	ctx      func(ctx context.Context) (context.Context, error) // of claims and completions
	key      func(k driver.Key) driver.Key                      // in every method
	transact func(m *mutant, ctx context.Context, p driver.TransactParams, fn driver.TransactFunc, next transactFunc) (driver.TransactResult, error)
	effect   func(m *mutant, ctx context.Context, id string) error

	batch    func(answers int, swap func(i, j int))
	deaf     bool // watchers hear nothing
	kind     driver.FailureKind
	overlaps func(p driver.OverlapParams) bool
}

type transactFunc func(ctx context.Context, p driver.TransactParams, fn driver.TransactFunc) (driver.TransactResult, error)

// mutant is the tiny driver with every ability and one fault. A method is one
// step also with its fault, so that each run breaks the same cases.
type mutant struct {
	*tiny.Store
	fault

	step     sync.Mutex
	seen     map[any]int // what a fault remembers
	watchers map[driver.Key]func()
}

// maxOutcome is small enough for a case to go beyond it quickly.
const maxOutcome = 2 << 20

func (f fault) open() *mutant {
	m := &mutant{Store: tiny.New(), fault: f, seen: make(map[any]int), watchers: make(map[driver.Key]func())}
	m.MaxOutcome = maxOutcome
	return m
}

// harnessFor returns the harness for a fault.
func (f fault) harnessFor() Harness {
	mutantOf := func(ctx context.Context) *mutant {
		d, _ := DriverFrom(ctx)
		return d.(*mutant)
	}
	h := Harness{
		Open: func(testing.TB) driver.Driver { return f.open() },
		Peer: func(_ testing.TB, d driver.Driver) driver.Driver { return d },
		Effect: func(ctx context.Context, id string) error {
			if m := mutantOf(ctx); f.effect != nil {
				return f.effect(m, ctx, id)
			}
			return mutantOf(ctx).Effect(ctx, id)
		},
		Effects:   func(ctx context.Context, id string) (int, error) { return mutantOf(ctx).Committed(id), nil },
		Interrupt: func(_ testing.TB, d driver.Driver) { d.(*mutant).Cut() },
		Bubble:    true,
	}
	if f.harness != nil {
		f.harness(&h)
	}
	return h
}

// tamper changes a stored record behind the driver's back, if there is one.
func (m *mutant) tamper(k driver.Key, f func(r *tiny.Record)) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	if r, ok := m.Records[k]; ok {
		f(&r)
		m.Records[k] = r
	}
}

func (m *mutant) stored(k driver.Key) tiny.Record {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	return m.Records[k]
}

func (m *mutant) remove(k driver.Key) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	delete(m.Records, k)
}

func (m *mutant) physical(k driver.Key) driver.Key {
	if m.key == nil {
		return k
	}
	return m.key(k)
}

func (m *mutant) Capabilities() driver.Capabilities {
	c := m.Store.Capabilities()
	if m.caps != nil {
		m.caps(&c)
	}
	return c
}

// through calls next, through the fault if there is one.
func through[P, R any](m *mutant, p P, broken func(*mutant, P, func(P) (R, error)) (R, error), next func(P) (R, error)) (R, error) {
	m.step.Lock()
	defer m.step.Unlock()
	if broken == nil {
		return next(p)
	}
	return broken(m, p, next)
}

func (m *mutant) context(ctx context.Context) (context.Context, error) {
	if m.ctx == nil {
		return ctx, nil
	}
	return m.ctx(ctx)
}

func (m *mutant) Claim(ctx context.Context, p driver.ClaimParams) (driver.ClaimResult, error) {
	ctx, err := m.context(ctx)
	if err != nil {
		return driver.ClaimResult{}, err
	}
	p.Key = m.physical(p.Key)
	return through(m, p, m.claim, func(p driver.ClaimParams) (driver.ClaimResult, error) { return m.Store.Claim(ctx, p) })
}

func (m *mutant) Complete(ctx context.Context, p driver.CompleteParams) (driver.CompleteResult, error) {
	ctx, err := m.context(ctx)
	if err != nil {
		return driver.CompleteResult{}, err
	}
	p.Key = m.physical(p.Key)
	res, err := through(m, p, m.complete, func(p driver.CompleteParams) (driver.CompleteResult, error) { return m.Store.Complete(ctx, p) })
	m.step.Lock()
	defer m.step.Unlock()
	if tell := m.watchers[p.Key]; tell != nil && !m.deaf {
		tell()
	}
	return res, err
}

func (m *mutant) Release(ctx context.Context, p driver.ReleaseParams) (driver.ReleaseResult, error) {
	p.Key = m.physical(p.Key)
	return through(m, p, m.release, func(p driver.ReleaseParams) (driver.ReleaseResult, error) { return m.Store.Release(ctx, p) })
}

func (m *mutant) Renew(ctx context.Context, p driver.RenewParams) (driver.RenewResult, error) {
	p.Key = m.physical(p.Key)
	return through(m, p, m.renew, func(p driver.RenewParams) (driver.RenewResult, error) { return m.Store.Renew(ctx, p) })
}

func (m *mutant) Resolve(ctx context.Context, p driver.ResolveParams) (driver.ResolveResult, error) {
	p.Key = m.physical(p.Key)
	return through(m, p, m.resolve, func(p driver.ResolveParams) (driver.ResolveResult, error) { return m.Store.Resolve(ctx, p) })
}

func (m *mutant) Inspect(ctx context.Context, p driver.InspectParams) (driver.InspectResult, error) {
	p.Key = m.physical(p.Key)
	return through(m, p, m.inspect, func(p driver.InspectParams) (driver.InspectResult, error) { return m.Store.Inspect(ctx, p) })
}

func (m *mutant) List(ctx context.Context, p driver.ListParams) (driver.ListResult, error) {
	return through(m, p, m.list, func(p driver.ListParams) (driver.ListResult, error) { return m.Store.List(ctx, p) })
}

func (m *mutant) Purge(ctx context.Context, p driver.PurgeParams) (driver.PurgeResult, error) {
	return through(m, p, m.purge, func(p driver.PurgeParams) (driver.PurgeResult, error) { return m.Store.Purge(ctx, p) })
}

func (m *mutant) Transact(ctx context.Context, p driver.TransactParams, fn driver.TransactFunc) (driver.TransactResult, error) {
	p.Claim.Key = m.physical(p.Claim.Key)
	run := func(ctx context.Context, c driver.ClaimResult) (driver.CompleteParams, error) {
		done, err := fn(ctx, c)
		done.Key = m.physical(done.Key)
		return done, err
	}
	if m.transact == nil {
		return m.Store.Transact(ctx, p, run)
	}
	return m.transact(m, ctx, p, run, m.Store.Transact)
}

func (m *mutant) ClaimBatch(ctx context.Context, p driver.ClaimBatchParams) (driver.ClaimBatchResult, error) {
	res := make([]driver.ClaimAnswer, len(p.Claims))
	for i, one := range p.Claims {
		res[i].Result, res[i].Err = m.Claim(ctx, one)
	}
	m.shuffle(len(res), func(i, j int) { res[i], res[j] = res[j], res[i] })
	return driver.ClaimBatchResult{Claims: res}, nil
}

func (m *mutant) CompleteBatch(ctx context.Context, p driver.CompleteBatchParams) (driver.CompleteBatchResult, error) {
	res := make([]driver.CompleteAnswer, len(p.Completions))
	for i, one := range p.Completions {
		res[i].Result, res[i].Err = m.Complete(ctx, one)
	}
	m.shuffle(len(res), func(i, j int) { res[i], res[j] = res[j], res[i] })
	return driver.CompleteBatchResult{Completions: res}, nil
}

func (m *mutant) RenewBatch(ctx context.Context, p driver.RenewBatchParams) (driver.RenewBatchResult, error) {
	res := make([]driver.RenewAnswer, len(p.Renewals))
	for i, one := range p.Renewals {
		res[i].Result, res[i].Err = m.Renew(ctx, one)
	}
	m.shuffle(len(res), func(i, j int) { res[i], res[j] = res[j], res[i] })
	return driver.RenewBatchResult{Renewals: res}, nil
}

func (m *mutant) shuffle(n int, swap func(i, j int)) {
	if m.batch != nil {
		m.batch(n, swap)
	}
}

func (m *mutant) Watch(_ context.Context, p driver.WatchParams) (driver.WatchResult, error) {
	k := m.physical(p.Key)
	m.step.Lock()
	defer m.step.Unlock()
	m.watchers[k] = p.Changed
	return driver.WatchResult{Stop: func() {
		m.step.Lock()
		defer m.step.Unlock()
		delete(m.watchers, k)
	}}, nil
}

func (m *mutant) Classify(driver.ClassifyParams) driver.ClassifyResult {
	return driver.ClassifyResult{Kind: m.kind}
}

func (m *mutant) Overlaps(p driver.OverlapParams) driver.OverlapResult {
	if m.overlaps != nil {
		return driver.OverlapResult{Overlap: m.overlaps(p)}
	}
	return driver.OverlapResult{Overlap: p.Other == driver.Driver(m) && p.Scope == p.OtherScope}
}

// lapsed reports whether a claimed record's lease has ended.
func lapsed(r tiny.Record) bool {
	return r.State == driver.StateClaimed && !time.Now().Before(r.LeaseEnd)
}
