package faults

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/idem-go/idem/driver"
)

// ErrInjected is what a call returns that was made to fail.
var ErrInjected = errors.New("faults: injected")

// CallFault is what happens to a call of a driver.
type CallFault struct {
	Before bool          // it fails, and nothing took effect
	After  bool          // it takes effect, and its reply is lost
	Twice  bool          // it is sent twice; the second answer counts
	Delay  time.Duration // before it is sent; ends with the context
}

// Call says which call of a driver it is.
type Call struct {
	Method string // "Claim", "Complete", "Release", "Renew" or "Transact"
	N      int    // of this method, from 1
}

// Inject returns a driver that asks plan what happens to each call of d's five
// methods and of Transact. plan is called concurrently. In a transaction, After means that the
// reply to the commit is lost (driver.ErrUnknown); Twice means nothing.
func Inject(d driver.Driver, plan func(Call) CallFault) driver.Driver {
	return &injected{Driver: d, plan: plan, counts: map[string]int{}}
}

// Seeded returns a plan that makes a share of the calls, from 0 to 1, fail in
// one of the ways given. The same seed makes the same choices, in the order in which the calls come.
func Seeded(seed uint64, share float64, ways ...CallFault) func(Call) CallFault {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, seed))
	return func(Call) CallFault {
		mu.Lock()
		defer mu.Unlock()
		if len(ways) == 0 || rng.Float64() >= share {
			return CallFault{}
		}
		return ways[rng.IntN(len(ways))]
	}
}

// injected leaves every other ability to the driver below it.
type injected struct {
	driver.Driver

	plan func(Call) CallFault

	mu     sync.Mutex
	counts map[string]int
}

var _ driver.Transactor = (*injected)(nil)

func (d *injected) Unwrap() driver.Driver { return d.Driver }

func (d *injected) next(method string) CallFault {
	d.mu.Lock()
	d.counts[method]++
	n := d.counts[method]
	d.mu.Unlock()
	return d.plan(Call{Method: method, N: n})
}

// meet runs a call under a fault.
func meet[R any](ctx context.Context, f CallFault, call func() (R, error)) (R, error) {
	var none R
	if f.Delay > 0 {
		t := time.NewTimer(f.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
	if f.Before {
		return none, ErrInjected
	}
	if f.Twice {
		_, _ = call()
	}
	res, err := call()
	if f.After {
		return none, ErrInjected
	}
	return res, err
}

func (d *injected) Claim(ctx context.Context, p driver.ClaimParams) (driver.ClaimResult, error) {
	return meet(ctx, d.next("Claim"), func() (driver.ClaimResult, error) { return d.Driver.Claim(ctx, p) })
}

func (d *injected) Complete(ctx context.Context, p driver.CompleteParams) (driver.CompleteResult, error) {
	return meet(ctx, d.next("Complete"), func() (driver.CompleteResult, error) { return d.Driver.Complete(ctx, p) })
}

func (d *injected) Release(ctx context.Context, p driver.ReleaseParams) (driver.ReleaseResult, error) {
	return meet(ctx, d.next("Release"), func() (driver.ReleaseResult, error) { return d.Driver.Release(ctx, p) })
}

func (d *injected) Renew(ctx context.Context, p driver.RenewParams) (driver.RenewResult, error) {
	return meet(ctx, d.next("Renew"), func() (driver.RenewResult, error) { return d.Driver.Renew(ctx, p) })
}

func (d *injected) Transact(ctx context.Context, p driver.TransactParams, fn driver.TransactFunc) (driver.TransactResult, error) {
	t, ok := driver.As[driver.Transactor](d.Driver)
	if !ok {
		return driver.TransactResult{}, errors.ErrUnsupported
	}
	f := d.next("Transact")
	f.Twice = false
	res, err := meet(ctx, f, func() (driver.TransactResult, error) { return t.Transact(ctx, p, fn) })
	if f.After && errors.Is(err, ErrInjected) {
		err = errors.Join(driver.ErrUnknown, err)
	}
	return res, err
}
