package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/idem-go/idem"
)

// patience is how long an owner that has lost its lease may take to learn of
// it once its successor runs. Its context ends before the lease does, but a
// busy machine runs timers late.
const patience = time.Second

// ledger is what really happened to the keys of one store, apart from what the
// store says.
type ledger struct {
	mu      sync.Mutex
	entries map[string]*entry
	effects int // accepted, over all keys that ever were
	stale   int // effects that were refused because a later run had its own
	wrong   []string
	excused int // violations of epochs in which the store's server failed over
}

type entry struct {
	guarantee idem.Guarantee
	entered   int
	fence     int64 // of the latest run that had its effect
	fences    map[int64]bool
	active    map[*attempt]bool
	outcome   string // recorded; empty: none yet
}

// attempt is one run of a key's function.
type attempt struct {
	ctx   context.Context //nolint:containedctx // the ledger looks whether it has ended
	key   string
	fence int64
}

func newLedger() *ledger { return &ledger{entries: make(map[string]*entry)} }

// violationf notes what must not happen.
func (l *ledger) violationf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.brokenf(format, args...)
}

func (l *ledger) brokenf(format string, args ...any) {
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

func (l *ledger) of(key string, g idem.Guarantee) *entry {
	e := l.entries[key]
	if e == nil {
		e = &entry{guarantee: g, fences: make(map[int64]bool), active: make(map[*attempt]bool)}
		l.entries[key] = e
	}
	return e
}

// enter notes that a run begins.
func (l *ledger) enter(ctx context.Context, key string, g idem.Guarantee, fence int64) *attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.of(key, g)
	e.entered++
	a := &attempt{ctx: ctx, key: key, fence: fence}
	switch {
	case e.outcome != "":
		l.brokenf("%s: ran again after the outcome %q was recorded", key, e.outcome)
	case g == idem.AtMostOnce && e.entered > 1:
		l.brokenf("%s: a guard ran %d times", key, e.entered)
	case g != idem.ExactlyOnce && e.fences[fence]:
		l.brokenf("%s: two runs have the fence %d", key, fence)
	}
	e.fences[fence] = true
	if g != idem.ExactlyOnce { // an inbox that lost its connection ends by itself
		for other := range e.active {
			l.watch(e, other)
		}
	}
	e.active[a] = true
	return a
}

// watch wants a run that has a successor to know that it has lost its lease.
func (l *ledger) watch(e *entry, a *attempt) {
	if a.ctx.Err() != nil {
		return
	}
	time.AfterFunc(patience, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if e.active[a] && a.ctx.Err() == nil {
			l.brokenf("%s: a run goes on beside its successor", a.key)
		}
	})
}

// effect accepts the effect of a run, unless a later run had its own. A fence
// is made for that.
func (l *ledger) effect(a *attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[a.key]
	if a.fence < e.fence {
		l.stale++
		return
	}
	e.fence = a.fence
	l.effects++
}

func (l *ledger) leave(a *attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries[a.key].active, a)
}

// recorded notes that a caller was told this outcome as the recorded one.
func (l *ledger) recorded(key string, g idem.Guarantee, outcome string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.of(key, g)
	switch {
	case e.entered == 0:
		l.brokenf("%s: has the outcome %q and never ran", key, outcome)
	case e.outcome != "" && e.outcome != outcome:
		l.brokenf("%s: has the outcomes %q and %q", key, e.outcome, outcome)
	}
	e.outcome = outcome
}

// known is the recorded outcome of a key; empty: none.
func (l *ledger) known(key string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[key]; e != nil {
		return e.outcome
	}
	return ""
}

// excuse takes back the violations since there were as many.
func (l *ledger) excuse(since int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.excused += len(l.wrong) - since
	l.wrong = l.wrong[:since]
}

func (l *ledger) violations() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.wrong)
}

// forget drops the keys of an epoch.
func (l *ledger) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.entries)
}

// hopeless reports whether there are more violations than anybody reads.
func (l *ledger) hopeless() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.wrong) > maxShown
}

func (l *ledger) count(effects int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.effects += effects
}
