package idem

import (
	"context"
	"time"

	"github.com/idem-go/idem/driver"
)

// runClaimed runs the function under the claim res and settles the key.
func (c *call) runClaimed(ctx context.Context, res driver.ClaimResult, at *landing) error {
	c.granted(ctx, res)
	if ctx.Err() != nil {
		c.giveBack(ctx)
		return c.cancelled(ctx, ErrStore, "the context ended before the function ran")
	}
	if err := c.freshen(ctx); err != nil {
		c.giveBack(ctx)
		return err
	}
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
	}})

	c.enter(ctx)
	c.beat.start(c)
	returned, err := false, error(nil)
	defer func() {
		// Also after a panic or Goexit, which goes on once the key is settled.
		c.beat.halt()
		c.run.end(nil)
		if t := c.conclude(err, returned); t.to != 0 {
			c.record(ctx, t, res, at)
		} else if t.release {
			c.giveBack(ctx)
		}
		c.beat.join()
	}()
	err = c.work.invoke(c.run)
	returned = true
	return err
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
	c.run.attempt.call = c
}

// runOpen runs the function without protection, because the store failed.
func (c *call) runOpen(ctx context.Context, store error) error {
	c.notify(ctx, NoticeFailedOpen, store)
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
	uncertain := transition{to: driver.StateUncertain, retention: RetainForever}
	if guard {
		uncertain.retention = c.set.retention
	}
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
		return transition{to: driver.StateCompleted, outcome: outcome, retention: firstPositive(retain, c.set.retention)}
	case kind == KindDomain:
		return transition{
			to: driver.StateCompleted, failure: err, outcome: c.encode(err),
			retention: firstPositive(retain, c.set.failureRetention, c.set.retention),
		}
	case guard, c.set.policy == PolicyHold && err != nil, c.set.policy == PolicyHold && !returned:
		return uncertain
	}
	return transition{release: true}
}

func firstPositive(ds ...time.Duration) time.Duration {
	for _, d := range ds {
		if d > 0 {
			return d
		}
	}
	return 0
}
