package idem

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/idem-go/idem/driver"
)

const (
	beatsPerLease = 3
	// cutShare is the last part of a lease, in which the function is already
	// cancelled: it has that long to stop before another run may begin.
	cutShare = 10
)

// heartbeat keeps the lease of one run. It is a timer, not a goroutine: a tick renews
// the lease, or cancels the function where the lease is about to end without
// a renewal. Its lock is never held over a call of the store.
type heartbeat struct {
	c      *call
	lease  time.Duration // each renewal asks for this
	renews bool          // false: the lease needs none
	cuts   bool          // the function is cancelled before an unrenewed lease ends
	last   time.Time     // no lease goes beyond: WithMaxLease

	mu      sync.Mutex
	timer   *time.Timer
	end     time.Time // of the lease, counted from before it was asked for
	halted  bool
	lost    bool
	pending *lazyContext   // of the renewal under way
	batched bool           // the renewal goes out with another one's
	fails   int            // renewals in a row
	ticks   sync.WaitGroup // under way; none begins once it is halted
}

// start begins to keep the lease of c, which was just claimed or renewed.
func (h *heartbeat) start(c *call) {
	if c.op.withoutOutcomes {
		return
	}
	h.c = c
	h.lease = c.claimParams().Lease
	h.renews = !c.op.caps.Ephemeral
	h.cuts = c.op.guarantee != AtMostOnce
	h.end = c.leaseEnd
	h.last = c.leaseEnd.Add(c.set.maxLease - h.lease)
	if !h.renews && !h.cuts {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timer = time.AfterFunc(time.Until(h.next()), h.tick)
	if h.renews && c.op.batch != nil {
		c.op.beats.add(h)
	}
}

// final reports whether the lease has reached its last end, but for the
// backend's rounding. The caller holds mu.
func (h *heartbeat) final() bool {
	return h.last.Sub(h.end) <= max(minDuration, h.c.op.caps.ClockPrecision)
}

// next is when there is something to do next. The caller holds mu.
func (h *heartbeat) next() time.Time {
	if !h.renews || h.final() {
		return h.cut()
	}
	return h.end.Add(h.lease/beatsPerLease - h.lease)
}

// cut is when the function is cancelled if nothing renews the lease. The
// caller holds mu.
func (h *heartbeat) cut() time.Time { return h.end.Add(-h.lease / cutShare) }

// tick renews or cancels.
func (h *heartbeat) tick() {
	renewing, lost := h.begin()
	if renewing == nil && lost == nil {
		return
	}
	defer h.ticks.Done() // also if the driver or the observer ends the goroutine
	if renewing != nil {
		sent := time.Now()
		res, err := h.renew(renewing, sent)
		renewing.end(nil)
		h.mu.Lock()
		h.pending = nil
		lost = h.renewed(sent, res, err)
		h.mu.Unlock()
	}
	if lost != nil {
		h.c.tell(h.c.run, *lost)
	}
}

// renew sends the renewal, with those of other runs that are due soon.
func (h *heartbeat) renew(renewing *lazyContext, now time.Time) (driver.RenewResult, error) {
	if h.c.op.batch != nil {
		if others := h.c.op.beats.due(h, now); len(others) > 0 {
			return h.renewTogether(renewing, others)
		}
	}
	return h.c.op.driver.Renew(renewing, h.params(now))
}

// begin returns the context of a renewal that is due, or what to tell if the lease is lost. Either way a tick is under way.
func (h *heartbeat) begin() (renewing *lazyContext, lost *Notice) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	switch {
	case h.halted || h.lost:
		return nil, nil
	case h.cuts && !now.Before(h.cut()):
		h.ticks.Add(1)
		return nil, h.lose(nil)
	case h.pending != nil || h.batched || !h.renews || h.final() || !now.Before(h.last):
		return nil, nil
	}
	if h.cuts {
		h.timer.Reset(time.Until(h.cut())) // whether the store answers or not
	}
	h.ticks.Add(1)
	h.pending = &lazyContext{parent: h.c.run, detached: true, deadline: now.Add(min(h.lease, h.last.Sub(now)))}
	return h.pending, nil
}

// renewed takes over the answer to a renewal and sets the timer. It returns
// what to tell if the lease is lost. The caller holds mu.
func (h *heartbeat) renewed(sent time.Time, res driver.RenewResult, err error) *Notice {
	var next time.Time
	switch {
	case h.halted || h.lost:
		return nil
	case errors.Is(err, driver.ErrLost):
		return h.lose(err)
	case h.timer == nil: // nothing to keep
		return nil
	case err == nil:
		h.fails = 0
		if end := sent.Add(res.LeaseLeft); end.After(h.end) {
			h.end = end
		}
		// Not at once again, however little the store gave.
		next = later(h.next(), time.Now().Add(min(h.lease, time.Second)/cutShare))
	default:
		h.fails++
		next = time.Now().Add(min(backoff(h.fails), h.lease/beatsPerLease))
	}
	if h.cuts {
		next = earlier(next, h.cut())
	}
	h.timer.Reset(time.Until(next))
	return nil
}

// lose cancels the function, and returns what to tell: as it is now, for the
// call goes on. The caller holds mu.
func (h *heartbeat) lose(cause error) *Notice {
	h.lost = true
	if h.pending != nil {
		h.pending.end(nil)
	}
	e := h.c.fail(ErrLeaseLost, cause)
	switch {
	case cause != nil:
	case h.final():
		e.Detail = fmt.Sprintf("the function runs longer than WithMaxLease(%v)", h.c.set.maxLease)
	default:
		e.Detail = "it could not be renewed in time"
	}
	h.c.run.end(e)
	return &Notice{Kind: NoticeLeaseLost, Info: h.c.info, Err: e}
}

// extend renews the lease at once, for at least d.
func (h *heartbeat) extend(ctx context.Context, d time.Duration) error {
	h.mu.Lock()
	left, lost := time.Until(h.last), h.lost || h.halted
	h.mu.Unlock()
	switch {
	case lost:
		return h.c.fail(ErrLeaseLost, nil)
	case d > left:
		return h.c.fail(ErrConfig, fmt.Errorf("Extend(%v): WithMaxLease leaves %v: raise it", d, left))
	}
	sent := time.Now()
	res, err := h.c.op.driver.Renew(ctx, driver.RenewParams{Key: h.c.key, Token: h.c.token, Lease: d})
	if err != nil && !errors.Is(err, driver.ErrLost) {
		return h.c.storeError(ctx, err)
	}
	h.mu.Lock()
	told := h.renewed(sent, res, err)
	lost = h.lost || h.halted // meanwhile, too
	h.mu.Unlock()
	if told != nil {
		h.c.tell(h.c.run, *told)
	}
	if lost {
		return h.c.fail(ErrLeaseLost, err)
	}
	return nil
}

// halt stops renewing: the function has returned. It does not wait for a
// renewal under way, see join.
func (h *heartbeat) halt() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.halted = true
	if h.timer != nil {
		h.timer.Stop()
	}
	if h.pending != nil {
		h.pending.end(nil)
	}
	if h.c != nil {
		h.c.leaseEnd = h.end
		h.c.op.beats.remove(h)
	}
}

// join waits until a tick that was under way has returned. Its renewal's context has
// ended by then, so it takes as long as the driver needs to notice: a Renew
// that ignores its context holds up the call.
func (h *heartbeat) join() { h.ticks.Wait() }
