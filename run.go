package idem

import (
	"cmp"
	"context"
	"time"

	"github.com/idem-go/idem/driver"
)

// runClaimed runs the function under the claim res and settles the key.
func (c *call) runClaimed(ctx context.Context, res driver.ClaimResult, at *landing) error {
	entered := false
	defer func() {
		if !entered { // also where the driver or the observer panics
			c.giveBack(ctx, untilSettled)
		}
	}()
	c.granted(ctx, res)
	if ctx.Err() != nil {
		return c.cancelled(ctx, ErrStore, "the context ended before the function ran")
	}
	if err := c.freshen(ctx); err != nil {
		return err
	}
	entered = true
	effective := c.fingerprint
	if len(effective) == 0 && res.TookOver {
		effective = res.Fingerprint
	}
	res.Fingerprint = effective
	c.op.flights.move(&c.flight, landing{phase: phaseRunning, res: driver.ClaimResult{
		Decision:    driver.DecisionInFlight,
		Fingerprint: effective,
		LeaseLeft:   c.set.leaseTTL,
		ClaimedAt:   res.ClaimedAt,
		Fence:       res.Fence,
		Attempt:     res.Attempt,
	}})

	c.enter(ctx)
	c.beat.start(c)
	t, settled := c.uncertain(), false
	defer func() {
		// Also after a panic or Goexit, which goes on once the key is settled.
		defer c.beat.join()
		c.beat.halt()
		c.run.end(nil)
		if !settled {
			t = c.conclude(nil, false)
		}
		c.finish(ctx, t, res, at)
	}()
	if c.over != 0 {
		var done bool
		var err error
		if t, done, err = c.reconcile(res); done {
			settled = true
			return err
		}
		c.over = 0
	}
	err := c.work.invoke(c.run)
	t, settled = c.conclude(err, true), true
	return err
}

// finish settles the key.
func (c *call) finish(ctx context.Context, t transition, res driver.ClaimResult, at *landing) {
	switch {
	case t.to != 0:
		c.record(ctx, t, res, at)
	case t.release:
		c.giveBack(ctx, untilSettled)
	}
}

// granted notes what the claim says of the run.
func (c *call) granted(ctx context.Context, res driver.ClaimResult) {
	c.info.Fence, c.info.Attempt, c.generation = res.Fence, res.Attempt, res.Generation
	if res.TookOver {
		c.notify(ctx, NoticeTakeover, nil)
	}
}

// freshen renews a lease of which a slow reply has left less than half, so
// that the function starts with a lease that its heartbeat can keep.
func (c *call) freshen(ctx context.Context) error {
	want := c.claimParams().Lease
	if time.Until(c.leaseEnd) >= want/2 {
		return nil
	}
	sent := time.Now()
	res, err := c.op.driver.Renew(ctx, driver.RenewParams{Key: c.key, Token: c.token, Lease: want})
	if err != nil {
		return c.storeError(ctx, err)
	}
	c.leaseEnd = sent.Add(res.LeaseLeft)
	if time.Until(c.leaseEnd) < want/2 {
		e := c.fail(ErrStore, nil)
		e.Detail = "its replies take longer than half a lease: raise WithLeaseTTL"
		return e
	}
	return nil
}

// enter makes the context that the function runs in.
func (c *call) enter(ctx context.Context) {
	c.run = &c.first
	if c.first.attempt.call != nil {
		c.run = new(runContext) // run again: the first one's may still be in use
	}
	c.run.parent = ctx
	c.run.attempt.call, c.run.attempt.fence, c.run.attempt.number = c, c.info.Fence, c.info.Attempt
}

// runOpen runs the function without protection, because the store failed.
func (c *call) runOpen(ctx context.Context, store error) error {
	c.notify(ctx, NoticeFailedOpen, store)
	c.op.flights.move(&c.flight, landing{phase: phaseRunning, res: driver.ClaimResult{
		Decision: driver.DecisionInFlight, Fingerprint: c.fingerprint,
	}})
	c.enter(ctx)
	defer func() {
		c.run.attempt.end()
		c.run.end(nil)
	}()
	return c.work.invoke(c.run)
}

// transition is what happens to the key after the function.
type transition struct {
	to        driver.State // 0: no completion
	release   bool
	failure   error // StateCompleted: nil for a value
	outcome   []byte
	retention time.Duration
}

// conclude decides by the guarantee, the policy and the kind of the failure.
func (c *call) conclude(err error, returned bool) transition {
	doNotRecord, retain := c.run.attempt.end()
	guard := c.op.guarantee == AtMostOnce
	kind := KindBug
	if returned && err != nil && !doNotRecord && c.set.policy == PolicyCache {
		kind = c.classify(err)
	}
	switch {
	case c.op.withoutOutcomes:
		return transition{}
	case returned && err == nil && !doNotRecord:
		outcome := c.encode(nil)
		if c.op.inner && c.omit {
			return transition{release: true} // a step without its value is of no use
		}
		return transition{to: driver.StateCompleted, outcome: outcome, retention: cmp.Or(retain, c.retention(false))}
	case kind == KindDomain:
		return transition{
			to: driver.StateCompleted, failure: err, outcome: c.encode(err),
			retention: cmp.Or(retain, c.retention(true)),
		}
	case guard, c.over != 0, c.set.policy == PolicyHold && (err != nil || !returned):
		return c.uncertain()
	}
	return transition{release: true}
}

// uncertain is the end of a run of which nobody knows what it did.
func (c *call) uncertain() transition {
	t := transition{to: driver.StateUncertain, retention: RetainForever}
	if c.op.guarantee == AtMostOnce {
		t.retention = c.set.retention
	}
	return t
}

// retention is how long the call's outcome is kept by its options.
func (c *call) retention(failure bool) time.Duration {
	if failure && c.set.failureRetention > 0 {
		return c.set.failureRetention
	}
	return c.set.retention
}
