package idem

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/idem-go/idem/driver"
)

// conflictTries is how often a transaction is run in all that meets a
// serialization failure or a deadlock.
const conflictTries = 10

// transact claims the key, runs the function and commits, all in one
// transaction, and again where that was rolled back by a conflict or where it is not
// known whether it committed.
func (c *call) transact(ctx context.Context, at *landing) (driver.ClaimResult, bool, error) {
	in := inbox{c: c}
	for try := 1; ; try++ {
		res, verdict := in.try(ctx, try)
		switch verdict {
		case inboxCommitted:
			in.committed(res, at)
			return res.Claim, true, nil
		case inboxDenied:
			c.work.reset() // what a transaction before returned was rolled back
			return res.Claim, false, nil
		case inboxFailed:
			if in.failure == nil {
				c.work.reset() // rolled back, or nobody knows
			}
			return res.Claim, in.entered, in.err
		case inboxAgain:
		}
	}
}

// verdict is what one transaction comes to.
type verdict uint8

const (
	inboxCommitted verdict = iota
	inboxDenied            // the claim was not granted: the result says why
	inboxFailed            // in.err is for the caller
	inboxAgain
)

// inbox is the state of a call over the transactions that it takes.
type inbox struct {
	c       *call
	runs    int       // of the function
	entered bool      // the function was, in the last transaction
	joined  bool      // the last transaction is the caller's
	failure error     // what the function returned there
	unsure  time.Time // since when it is not known whether a commit happened; zero: it is
	outcome []byte    // what the last transaction stores
	err     error
}

// try is one transaction, and the pause before the next.
func (in *inbox) try(ctx context.Context, n int) (driver.TransactResult, verdict) {
	settling := ctx
	if !in.unsure.IsZero() {
		detached := &lazyContext{parent: ctx, detached: true, deadline: in.unsure.Add(minSettling)}
		defer detached.end(nil)
		settling = detached
	}
	res, err := in.once(ctx, settling)
	v := in.judge(ctx, res, err, n)
	if v == inboxAgain {
		in.c.notify(ctx, NoticeRetry, err)
		sleep(settling, backoff(n))
	}
	return res, v
}

// once is one transaction. ctx is the caller's, settling the one that the driver gets.
func (in *inbox) once(ctx, settling context.Context) (driver.TransactResult, error) {
	in.entered, in.joined, in.failure = false, false, nil
	p := driver.TransactParams{Claim: in.c.claimParams()}
	return in.c.op.tx.Transact(settling, p, func(txCtx context.Context, claim driver.ClaimResult) (driver.CompleteParams, error) {
		in.unsure = time.Time{} // an earlier commit would have been found
		if ctx.Err() != nil {
			return driver.CompleteParams{}, ctx.Err()
		}
		in.joined = claim.Joined
		return in.run(txCtx, claim)
	})
}

// run runs the function in the transaction.
func (in *inbox) run(ctx context.Context, claim driver.ClaimResult) (driver.CompleteParams, error) {
	c := in.c
	c.granted(ctx, claim)
	if !c.joins {
		c.op.flights.move(&c.flight, landing{phase: phaseRunning, res: driver.ClaimResult{
			Decision: driver.DecisionInFlight, Fingerprint: c.fingerprint, ClaimedAt: claim.ClaimedAt, Fence: claim.Fence, Attempt: claim.Attempt,
		}})
	}
	c.enter(ctx)
	defer c.run.end(nil)
	defer c.run.attempt.end()
	in.entered = true
	in.runs++
	if in.failure = c.work.invoke(c.run); in.failure != nil {
		return driver.CompleteParams{}, in.failure
	}
	_, retain := c.run.attempt.end()
	in.outcome = c.encode(nil)
	return driver.CompleteParams{
		Key:       c.key,
		Token:     c.token,
		To:        driver.StateCompleted,
		Outcome:   in.outcome,
		Retention: cmp.Or(retain, c.set.retention),
		Tombstone: c.op.tombstone,
		Format:    recordFormat,
	}, nil
}

// judge says what the transaction came to.
func (in *inbox) judge(ctx context.Context, res driver.TransactResult, err error, try int) verdict {
	c := in.c
	switch {
	case err == nil && res.Claim.Decision == driver.DecisionClaimed:
		return inboxCommitted
	case err == nil && in.unsure.IsZero():
		return inboxDenied
	case err == nil && res.Claim.Decision == driver.DecisionCompleted && res.Claim.Own:
		return inboxCommitted
	case err == nil && res.Claim.Decision != driver.DecisionInFlight:
		return inboxDenied // another call's: ours had not committed
	case in.failure != nil:
		in.err = in.failure
		if errors.Is(err, driver.ErrConflict) {
			return in.retry(ctx, try)
		}
		return inboxFailed
	case !in.entered && in.unsure.IsZero():
		in.err = c.storeError(ctx, err)
		return inboxFailed
	case in.entered && errors.Is(err, driver.ErrTooLarge) && !c.omit:
		c.omit = true // everything was rolled back: run again and keep no body
		return inboxAgain
	case in.entered && (in.joined || isAny(err, driver.ErrConflict, driver.ErrBusy, driver.ErrTooLarge)):
		in.err = c.storeError(ctx, err)
		return in.retry(ctx, try)
	}
	return in.undecided(err)
}

// retry runs everything again, unless the transaction is the caller's: then
// only the caller can.
func (in *inbox) retry(ctx context.Context, try int) verdict {
	if in.joined || try >= conflictTries || ctx.Err() != nil {
		return inboxFailed
	}
	return inboxAgain
}

// undecided goes on asking whether the commit happened: claiming again waits
// for a commit that may still be under way, which a plain read would not see.
func (in *inbox) undecided(err error) verdict {
	now := time.Now()
	if in.unsure.IsZero() {
		in.unsure = now
	}
	if now.Sub(in.unsure) < minSettling && in.runs < conflictTries {
		return inboxAgain
	}
	e := in.c.fail(ErrOutcomeUnknown, err)
	e.Detail = "the reply to the commit was lost"
	e.RetryAfter = retryUnknown
	in.entered, in.err = true, e
	return inboxFailed
}

// committed notes that the effect and its record are in the store, or will be
// with the caller's transaction.
func (in *inbox) committed(res driver.TransactResult, at *landing) {
	c := in.c
	if res.Claim.Joined {
		return
	}
	claim := res.Claim
	if claim.Decision == driver.DecisionClaimed {
		claim.CompletedAt, claim.LifeLeft = res.Complete.CompletedAt, res.Complete.LifeLeft
		claim.Fingerprint = c.fingerprint
	}
	c.info.CompletedAt, c.info.Recorded = claim.CompletedAt, true
	at.res = completed(claim, in.outcome)
}
