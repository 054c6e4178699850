package idem

import (
	"context"
	"errors"
	"time"

	"github.com/idem-go/idem/driver"
)

// record stores how the run ended. It goes on after the caller's context has
// ended and while the store fails, as long as [call.settle] says. Whatever
// comes of it, the caller keeps the function's value.
func (c *call) record(ctx context.Context, t transition, claim driver.ClaimResult, at *landing) {
	settling := c.settle(ctx)
	defer settling.end(nil)
	p := driver.CompleteParams{
		Key: c.key, Token: c.token, To: t.to, Outcome: t.outcome,
		Retention: t.retention, Tombstone: c.op.tombstone, Format: recordFormat,
	}
	for try := 1; ; try++ {
		at.asked = time.Now()
		res, err := c.sendCompletion(settling, p)
		switch {
		case err == nil:
			c.recorded(p, res, claim, at)
			return
		case errors.Is(err, driver.ErrTooLarge) && !c.omit && !c.op.inner:
			c.omit = true
			p.Outcome = c.encode(t.failure)
			continue
		case errors.Is(err, driver.ErrLost):
			c.notify(ctx, NoticeNotRecorded, c.fail(ErrLeaseLost, err))
			return
		case isAny(err, driver.ErrInvalid, driver.ErrCorrupt, driver.ErrNewerFormat, driver.ErrTooLarge, driver.ErrNested),
			!sleep(settling, backoff(try)):
			c.notify(ctx, NoticeNotRecorded, err)
			return
		}
		c.notify(ctx, NoticeRetry, err)
	}
}

// recorded notes that the store has accepted the outcome, and leaves it to the followers.
func (c *call) recorded(p driver.CompleteParams, res driver.CompleteResult, claim driver.ClaimResult, at *landing) {
	c.info.CompletedAt = res.CompletedAt
	if p.To != driver.StateCompleted {
		return
	}
	c.info.Recorded = true
	claim.CompletedAt, claim.LifeLeft = res.CompletedAt, res.LifeLeft
	at.res = completed(claim, p.Outcome)
}

// completed is what a duplicate would now be answered by the store.
func completed(claim driver.ClaimResult, outcome []byte) driver.ClaimResult {
	claim.Decision = driver.DecisionCompleted
	claim.Outcome, claim.Format = outcome, recordFormat
	claim.Own, claim.LeaseLeft = false, 0
	return claim
}
