package idem

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem/driver"
)

const (
	recordFormat = 1

	// How often a step is tried in all before the call gives up on it.
	claimTries   = 3
	giveTries    = 3
	untilSettled = 0 // no number ends it

	// minSettling is how long a call goes on settling its key at least, after
	// the caller's context has ended or the store has failed.
	minSettling = 5 * time.Second

	firstBackoff   = 10 * time.Millisecond
	longestBackoff = time.Second
)

// ask asks the store for the key, and runs the function if it is granted.
func (c *call) ask(ctx context.Context, at *landing) (res driver.ClaimResult, ran bool, err error) {
	if c.op.guarantee == ExactlyOnce {
		return c.transact(ctx, at)
	}
	sent := time.Now()
	c.over = 0 // a claim that the call made while it waited was denied
	res, err = c.claim(ctx)
	if err != nil {
		if c.set.failOpen && errors.Is(err, ErrStore) && ctx.Err() == nil {
			return res, true, c.runOpen(ctx, err)
		}
		return res, false, err
	}
	if c.reconciles(res) {
		sent = time.Now()
		if res, err = c.claimUncertain(ctx, res); err != nil {
			return res, false, err
		}
	}
	if res.Decision != driver.DecisionClaimed {
		return res, false, nil
	}
	c.leaseEnd = sent.Add(res.LeaseLeft)
	return res, true, c.runClaimed(ctx, res, at)
}

// claim claims the key. A claim whose reply is lost is sent again with its
// token; if the call gives up without an answer, it gives back what it may have.
func (c *call) claim(ctx context.Context) (driver.ClaimResult, error) {
	p := c.claimParams()
	granted := false // perhaps, by one of the tries
	for try := 1; ; try++ {
		res, err := c.sendClaim(ctx, p)
		if err == nil {
			return res, nil
		}
		unknown := !isAny(err, driver.ErrBusy, driver.ErrConflict, driver.ErrCorrupt, driver.ErrNewerFormat,
			driver.ErrNested, driver.ErrInvalid, driver.ErrLost)
		granted = granted || unknown
		if (unknown || errors.Is(err, driver.ErrConflict)) && try < claimTries && ctx.Err() == nil {
			c.notify(ctx, NoticeRetry, err)
			if sleep(ctx, backoff(try)) {
				continue
			}
		}
		if granted {
			c.giveBack(ctx, giveTries)
		}
		return res, c.storeError(ctx, err)
	}
}

func (c *call) claimParams() driver.ClaimParams {
	p := driver.ClaimParams{
		Key:         c.key,
		Token:       c.token,
		Fingerprint: c.fingerprint,
		Lease:       c.set.leaseTTL,
		OnLapse:     driver.TakeOver,
		Guarantee:   c.op.guarantee,
		Retention:   c.set.retention,
		Tombstone:   c.op.tombstone,
		Over:        c.over,
		WaiterHint:  c.set.wait > 0,
		Format:      recordFormat,
	}
	if c.op.caps.Ephemeral && !c.op.withoutOutcomes {
		p.Lease = c.set.maxLease // no owner can die and leave it behind
	}
	switch {
	case c.op.guarantee == AtMostOnce:
		p.OnLapse = driver.Uncertain
	case c.set.policy == PolicyHold, c.over != 0:
		p.OnLapse, p.Retention = driver.Uncertain, RetainForever
	}
	return p
}

// storeError tells the caller what a driver's error means.
func (c *call) storeError(ctx context.Context, err error) *Error {
	switch {
	case isAny(err, driver.ErrCorrupt, driver.ErrNewerFormat):
		return c.fail(ErrUnreadable, err)
	case isAny(err, driver.ErrNested, driver.ErrInvalid):
		return c.fail(ErrConfig, err)
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		err = errors.Join(ctx.Err(), err)
	}
	return c.fail(ErrStore, err)
}

// giveBack gives up the claim: the function was not entered, or is to run
// again. It goes on while the store fails, as long as [call.settle] says, or for
// so many tries, where the claim may never have been granted: nobody waits then
// for what is most likely not there.
func (c *call) giveBack(ctx context.Context, tries int) {
	settling := c.settle(ctx)
	defer settling.end(nil)
	for try := 1; ; try++ {
		err := c.unclaim(settling)
		switch {
		case err == nil, errors.Is(err, driver.ErrLost), try == tries:
			return
		case isAny(err, driver.ErrInvalid, driver.ErrCorrupt, driver.ErrNewerFormat, driver.ErrNested),
			!sleep(settling, backoff(try)):
			if tries == untilSettled {
				c.notify(ctx, NoticeNotRecorded, fmt.Errorf("the key is not given back and blocked until its lease ends: %w", err))
			}
			return
		}
		if tries == untilSettled {
			c.notify(ctx, NoticeRetry, err)
		}
	}
}

// unclaim makes the key what it was before the claim: free, or uncertain.
func (c *call) unclaim(ctx context.Context) (err error) {
	if c.over == 0 {
		_, err = c.op.driver.Release(ctx, driver.ReleaseParams{Key: c.key, Token: c.token, Keep: c.keep()})
		return err
	}
	_, err = c.op.driver.Complete(ctx, driver.CompleteParams{
		Key: c.key, Token: c.token, To: driver.StateUncertain,
		Retention: c.uncertain().retention, Tombstone: c.op.tombstone, Format: recordFormat,
	})
	return err
}

// settle returns the context of a step that the caller's context does not
// end: it lasts for the lease's rest, or minSettling if that is longer.
func (c *call) settle(ctx context.Context) *lazyContext {
	now := time.Now()
	end := c.leaseEnd
	if c.op.caps.Ephemeral { // its leases are as long as a run may be
		end = earlier(end, now.Add(c.set.leaseTTL))
	}
	return &lazyContext{parent: ctx, detached: true, deadline: later(now.Add(minSettling), end)}
}

// keep is how long a released key remembers its generation.
func (c *call) keep() time.Duration { return min(c.set.retention, DefaultRetention) }

func backoff(try int) time.Duration {
	return jitter(min(firstBackoff<<min(try-1, 10), longestBackoff))
}

func isAny(err error, targets ...error) bool {
	for _, t := range targets {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}
