package idem

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/idem-go/idem/codec"
	"github.com/idem-go/idem/driver"
	"github.com/idem-go/idem/internal/envelope"
)

// maxShortText is what is kept of a failure's text where the whole has no room.
const maxShortText = 256

// resultType is what is known of the type of a result.
type resultType struct {
	name string // stored with each value
	err  error  // it cannot be stored
}

// resultType checks the type of a result and names it.
func (op *Operation) resultType(t reflect.Type, c codec.Codec) (resultType, error) {
	own := c == op.defaults.codec
	if own {
		if known, ok := op.types.Load(t); ok {
			r := known.(resultType) //nolint:forcetypeassert // nothing else is stored
			return r, r.err
		}
	}
	r := resultType{name: typeName(t)}
	if checker, ok := c.(codec.TypeChecker); ok {
		r.err = checker.CheckType(t)
	}
	if own {
		op.types.Store(t, r)
	}
	return r, r.err
}

// typeName names a type as it is stored: without pointers, by its package's path.
func typeName(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Name() != "" && t.PkgPath() != "" {
		return t.PkgPath() + "." + t.Name()
	}
	return t.String()
}

// scratch holds buffers to encode into, so that what is stored has no spare capacity.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// encode returns the stored form of how the run ended: of failure, or of the
// call's value if that is nil. What cannot be kept is left out.
func (c *call) encode(failure error) []byte {
	if failure != nil {
		return c.encodeFailure(failure)
	}
	if c.omit {
		return encodeOmitted()
	}
	outcome, err := c.encodeTarget(c.typ.name, c.work.target())
	if err != nil {
		c.notify(c.run, NoticeNotRecorded, fmt.Errorf("the result cannot be encoded, only its success is recorded: %w", err))
		c.omit = true
		return encodeOmitted()
	}
	return outcome
}

// encodeTarget returns the stored form of the value that target points to.
func (c *call) encodeTarget(typ string, target any) ([]byte, error) {
	buf := scratch.Get().(*[]byte) //nolint:forcetypeassert // nothing else is stored
	defer scratch.Put(buf)
	head := envelope.AppendHeader((*buf)[:0], envelope.Value, c.set.codec.Name(), typ, "")
	full, err := c.set.codec.Append(head, target)
	if err != nil {
		return nil, err
	}
	*buf = full
	if len(full)-len(head) > c.op.maxResult || c.tooLarge(len(full)) {
		c.omit = true
		return encodeOmitted(), nil
	}
	return append(make([]byte, 0, len(full)), full...), nil
}

func encodeOmitted() []byte { return envelope.AppendHeader(nil, envelope.Omitted, "", "", "") }

func (c *call) encodeFailure(failure error) []byte {
	text := strings.ToValidUTF8(failure.Error(), "\uFFFD")
	if c.omit || len(text) > c.op.maxResult || c.tooLarge(len(text)+maxShortText) {
		text = strings.ToValidUTF8(text[:min(len(text), maxShortText)], "") + "…"
	}
	return envelope.AppendHeader(nil, envelope.Failure, "", "", text)
}

// tooLarge reports whether the driver cannot hold an outcome of n bytes.
func (c *call) tooLarge(n int) bool { return c.op.caps.MaxOutcome > 0 && n > c.op.caps.MaxOutcome }

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
		e.Final, e.Since = true, res.ClaimedAt
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
	e.Since = res.ClaimedAt
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
	o, err := envelope.Parse(res.Outcome)
	if err != nil {
		return c.fail(ErrUnreadable, err)
	}
	switch o.Kind {
	case envelope.Value:
	case envelope.Failure:
		return &ReplayedError{Name: o.Name, Message: o.Text, At: res.CompletedAt}
	case envelope.Omitted:
		e := c.fail(ErrResultOmitted, nil)
		e.Detail = "it has run and succeeded"
		return e
	}
	if o.Name != c.typ.name {
		return c.fail(ErrUnreadable, fmt.Errorf("stored as a %s, asked for as a %s", o.Name, c.typ.name))
	}
	reader, ok := c.set.reader(o.Codec)
	if !ok {
		return c.fail(ErrUnreadable, fmt.Errorf("stored with the codec %q: add it to WithCodec", o.Codec))
	}
	c.work.reset()
	if err := reader.Decode(o.Payload, c.work.target()); err != nil {
		c.work.reset()
		return c.fail(ErrUnreadable, err)
	}
	return nil
}
