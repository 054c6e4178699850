package idem

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/idem-go/idem/driver"
)

const (
	// maxAsking bounds how long a call that does not wait follows another one that has
	// no answer from the store yet: that one may itself be held up by a
	// transaction which the follower is in.
	maxAsking = time.Second

	// retryUnknown is the hint where nothing tells how long the key is busy:
	// an inbox has no lease.
	retryUnknown = time.Second
)

// answerOrRun leads or follows until there is an answer.
func (c *call) answerOrRun(ctx context.Context) error {
	if c.joins {
		// Others cannot see what an open transaction has done.
		return c.lead(ctx, landing{}, &landing{})
	}
	var before landing
	for {
		leader := c.op.flights.enter(c.key, &c.flight)
		if leader == nil {
			return c.leadFlight(ctx, before)
		}
		at, done, err := c.follow(ctx, leader)
		if done {
			return err
		}
		before = at
	}
}

// leadFlight leads, and leaves the answer to the followers.
func (c *call) leadFlight(ctx context.Context, before landing) error {
	var at landing
	settled := c.op.settled.Load()
	defer func() {
		c.op.remember(c.key, at.res, at.asked, settled)
		c.op.flights.leave(c.key, &c.flight, at)
	}()
	return c.lead(ctx, before, &at)
}

// lead asks the store until it has an answer, the key is free and the function
// has run, or the wait is over. before is what a leader before it left.
func (c *call) lead(ctx context.Context, before landing, at *landing) error {
	poll := pacer{pause: firstPoll, next: before.pollAt}
	defer poll.end()
	for asked := false; ; asked = true {
		if !poll.sleep(ctx, c.waitUntil) {
			return c.cancelled(ctx, c.inFlight(before.res).Reason, "the context ended while waiting")
		}
		at.asked = time.Now()
		res, ran, err := c.ask(ctx, at)
		switch {
		case ran:
			return err
		case err != nil:
			if errors.Is(err, ErrStore) && ctx.Err() == nil {
				at.err = err
			}
			return err
		case !c.waits(res, time.Now()):
			if res.Decision != driver.DecisionInFlight || driver.SameFingerprint(res.Fingerprint, c.fingerprint) {
				at.res = res // another request could have been granted the claim
			}
			at.pollAt = poll.next
			return c.answer(res)
		case !asked:
			c.notify(ctx, NoticeWaiting, nil)
		default:
			poll.watch(ctx, c)
		}
		before = landing{phase: phaseWaiting, res: res, pollAt: poll.after(res)}
		if !c.joins {
			c.op.flights.move(&c.flight, before)
		}
	}
}

// follow waits for another call of the key in this process. It is done if that
// gave an answer; else it returns where the other landed, and the store must be asked.
func (c *call) follow(ctx context.Context, leader *flight) (at landing, done bool, err error) {
	bound := later(time.Now().Add(maxAsking), c.waitUntil)
	for noticed := false; ; {
		at, changed := c.op.flights.look(leader)
		switch {
		case at.phase == phaseOver && at.res.Decision != 0 && !c.waits(at.res, time.Now()) && !c.reconciles(at.res):
			return at, true, c.answer(at.res)
		case at.phase == phaseOver && at.err != nil && !c.set.failOpen:
			return at, true, c.failLike(at.err)
		case at.phase == phaseOver:
			return at, false, nil
		case at.phase == phaseAsking:
			// The answer may be there at once, so even a call that does not wait waits for it.
			changed, err := c.await(ctx, changed, bound)
			if err == nil && !changed {
				err = c.unasked()
			}
			if err != nil {
				return at, true, err
			}
		case !c.waits(at.res, time.Now()):
			return at, true, c.answer(at.res)
		default:
			if !noticed {
				noticed = true
				c.notify(ctx, NoticeWaiting, nil)
			}
			if _, err := c.await(ctx, changed, c.waitUntil); err != nil {
				return at, true, err
			}
		}
	}
}

// unasked says that another call has the key, of which the store has not said anything yet.
func (c *call) unasked() error {
	e := c.inFlight(driver.ClaimResult{})
	e.Final, e.RetryAfter = false, retryUnknown
	e.Detail = "another call in this process asks the store"
	return e
}

// await waits for a change until the deadline. It reports whether there was one.
func (c *call) await(ctx context.Context, changed <-chan struct{}, until time.Time) (bool, error) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-changed:
		return true, nil
	case <-timer.C:
		return false, nil
	case <-ctx.Done():
		return false, c.cancelled(ctx, c.inFlight(driver.ClaimResult{}).Reason, "the context ended while waiting")
	}
}

// waits reports whether the call goes on waiting after the answer res.
func (c *call) waits(res driver.ClaimResult, now time.Time) bool {
	return res.Decision == driver.DecisionInFlight && now.Before(c.waitUntil) && !c.op.withoutOutcomes &&
		driver.SameFingerprint(res.Fingerprint, c.fingerprint)
}

// sleep pauses for d and reports whether ctx lasted.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// jitter spreads d over half to one and a half of it, so that calls that met once do not
// meet again.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d+1) //nolint:gosec // no secret
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
