package main

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/idem-go/idem/conformance/faults"
)

// share is how many of a store's calls meet a fault.
const share = 0.06

// ways are the faults of calls.
var ways = []faults.CallFault{
	{Before: true}, {Before: true}, {Before: true},
	{After: true}, {After: true}, {After: true},
	{Twice: true}, {Twice: true}, {Twice: true},
	{Delay: 20 * time.Millisecond}, {Delay: 20 * time.Millisecond},
	{After: true, Delay: 50 * time.Millisecond},
	{Delay: 1500 * time.Millisecond},
}

// injected counts the faults of a store.
type injected struct {
	before, lost, twice, delayed, cuts, stalls, outages atomic.Int64

	out [handleCount]atomic.Bool // every call of this handle fails
}

func (n *injected) total() int64 {
	return n.before.Load() + n.lost.Load() + n.twice.Load() + n.delayed.Load() + n.cuts.Load() + n.stalls.Load() + n.outages.Load()
}

// fail has one handle after the other fail for a while, in which its runs lose their leases to others.
func (n *injected) fail(ctx context.Context, rng *rand.Rand) {
	for pause(ctx, between(rng, 3*time.Second, 10*time.Second)) {
		out := &n.out[rng.IntN(handleCount)]
		n.outages.Add(1)
		out.Store(true)
		pause(ctx, between(rng, leaseTTL, 2*leaseTTL))
		out.Store(false)
	}
}

// counting is the plan of a handle, which says what it did.
func (n *injected) counting(handle int, plan func(faults.Call) faults.CallFault) func(faults.Call) faults.CallFault {
	return func(c faults.Call) faults.CallFault {
		f := plan(c)
		f.Before = f.Before || n.out[handle].Load()
		for _, one := range []struct {
			happens bool
			counter *atomic.Int64
		}{{f.Before, &n.before}, {f.After, &n.lost}, {f.Twice && c.Method != "Transact", &n.twice}, {f.Delay > 0, &n.delayed}} {
			if one.happens {
				one.counter.Add(1)
			}
		}
		return f
	}
}

// disturb breaks connections until the context ends: all at once, one in the
// middle of a message, or all by a silence in which leases end.
func (n *injected) disturb(ctx context.Context, p *faults.Proxy, rng *rand.Rand) {
	for pause(ctx, between(rng, 300*time.Millisecond, 3*time.Second)) {
		switch rng.IntN(6) {
		case 0:
			p.Cut()
			n.cuts.Add(1)
		case 1:
			n.stalls.Add(1)
			p.Handle(func(faults.Message) faults.Fault { return faults.Stall })
			pause(ctx, between(rng, 500*time.Millisecond, 3*time.Second))
			p.Handle(nil)
			p.Cut()
		default:
			n.cuts.Add(1)
			at := 1 + rng.IntN(20)
			fault := []faults.Fault{faults.CutBefore, faults.CutWithin, faults.CutAfter}[rng.IntN(3)]
			way := []faults.Direction{faults.ToServer, faults.ToClient}[rng.IntN(2)]
			p.Handle(func(m faults.Message) faults.Fault {
				if m.Direction == way && m.N == at {
					return fault
				}
				return faults.Pass
			})
		}
	}
	p.Handle(nil)
	p.Cut()
}

// pause waits and reports whether the context still lasts.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func between(rng *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(rng.Int64N(int64(high-low)))
}

// newRand makes the choices of one actor, which a seed repeats.
func newRand(seed, actor uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, actor)) //nolint:gosec // to be repeated
}
