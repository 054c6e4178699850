package idem

import (
	"fmt"
	"slices"
	"time"

	"github.com/idem-go/idem/driver"
	"github.com/idem-go/idem/internal/envelope"
)

// answer is the end of a call that does not run the function.
func (c *call) answer(res driver.ClaimResult) error {
	c.info.Fence, c.info.Attempt, c.info.CompletedAt = res.Fence, res.Attempt, res.CompletedAt
	if !driver.SameFingerprint(res.Fingerprint, c.fingerprint) {
		e := c.fail(ErrMismatch, nil)
		e.Detail = "the fingerprint differs: use a new key for a new request"
		return e
	}
	switch res.Decision {
	case driver.DecisionInFlight:
		return c.inFlight(res)
	case driver.DecisionUncertain:
		e := c.fail(ErrOutcomeUnknown, nil)
		e.Final, e.Since, e.Attempt = true, res.ClaimedAt, res.Attempt
		e.Detail = "it may have run; settle it with Operation.Resolve"
		return e
	case driver.DecisionExpired:
		return c.fail(ErrKeyExpired, nil)
	case driver.DecisionCompleted:
		return c.replay(res)
	default:
		return c.fail(ErrStore, fmt.Errorf("the driver answered the claim with %v", res.Decision))
	}
}

// inFlight says that another call has the key.
func (c *call) inFlight(res driver.ClaimResult) *Error {
	e := c.fail(ErrInProgress, nil)
	e.Since, e.Attempt = res.ClaimedAt, res.Attempt
	e.RetryAfter = retryUnknown
	if res.LeaseLeft > 0 {
		// Where owners need no heartbeat the lease is as long as a run may be.
		e.RetryAfter = min(res.LeaseLeft, c.set.leaseTTL)
	}
	if c.op.guarantee == AtMostOnce {
		e.Reason = ErrOutcomeUnknown
		e.Detail = "it is running elsewhere"
		if c.op.withoutOutcomes {
			e.Final, e.RetryAfter, e.Detail = true, 0, "it was claimed before; no outcomes are stored"
		}
	}
	return e
}

// replay answers with the stored outcome.
func (c *call) replay(res driver.ClaimResult) error {
	c.info.Replayed, c.info.Recorded = true, true
	o, err := c.open(res.Outcome)
	if err != nil {
		return c.fail(ErrUnreadable, err)
	}
	switch o.Kind {
	case envelope.Value:
	case envelope.Failure:
		return c.replayFailure(o, res.CompletedAt)
	case envelope.Omitted:
		e := c.fail(ErrResultOmitted, nil)
		e.Detail = "it has run and succeeded"
		return e
	}
	if o.Name != c.typ.name && !slices.Contains(c.typ.former, o.Name) {
		return c.fail(ErrUnreadable, fmt.Errorf("stored as a %s, asked for as a %s", o.Name, c.typ.name))
	}
	reader, ok := c.set.reader(o.Codec)
	if !ok {
		return c.fail(ErrUnreadable, fmt.Errorf("stored with the codec %q: add it to WithCodec", o.Codec))
	}
	c.work.reset()
	if err := guarded(func() error { return reader.Decode(o.Payload, c.work.target()) }); err != nil {
		c.work.reset()
		return c.fail(ErrUnreadable, err)
	}
	return nil
}

// replayFailure returns the stored failure with the errors that it can make again.
func (c *call) replayFailure(o envelope.Outcome, at time.Time) error {
	e := &ReplayedError{Name: o.Name, Message: o.Text, At: at}
	if reader, ok := c.set.reader(o.Codec); ok {
		e.Err = c.op.rebuild(reader, o.Payload)
	}
	return e
}
