package idemqueue

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/idem-go/idem"
)

// Action is what to do with a message.
type Action uint8

// The actions; zero is none.
const (
	Ack        Action = 1 // it is done
	Retry      Action = 2 // deliver it again, after the delay
	DeadLetter Action = 3 // nobody can handle it as it is: put it aside for a person
)

// String returns the action's name.
func (a Action) String() string {
	switch a {
	case Ack:
		return "Ack"
	case Retry:
		return "Retry"
	case DeadLetter:
		return "DeadLetter"
	}
	return "Action(" + strconv.Itoa(int(a)) + ")"
}

// Decision says what to do with a message, and why.
type Decision struct {
	Action Action
	Delay  time.Duration // of a Retry; 0: as the broker does by itself
	Err    error         // the handler's failure, or why it did not run; nil: it succeeded
}

// FirstKey takes the key from the first of keys that has one: a header before
// the payload, say, or the broker's message ID last. A broker's ID tells
// redeliveries of one message apart from others, not a producer that sent twice.
func FirstKey[M any](keys ...idem.KeyFunc[M]) idem.KeyFunc[M] {
	return func(m M) (string, error) {
		var errs []error
		for _, key := range keys {
			k, err := key(m)
			if err == nil && k != "" {
				return k, nil
			}
			errs = append(errs, err)
		}
		return "", errors.Join(errs...)
	}
}

// Handler returns fn as a handler that runs once for each key, as the
// operation op. What is wrong with its arguments is refused here. On AtLeastOnce, failures free the
// key (idem.PolicyRelease), unless opts say otherwise. A panic of fn goes on.
func Handler[M any](
	op *idem.Operation, key idem.KeyFunc[M], fn func(context.Context, M) error, opts ...idem.WrapOption,
) (func(context.Context, M) Decision, error) {
	if fn == nil {
		return nil, errNoHandler
	}
	handle, err := process(op, key, func(ctx context.Context, m M) (struct{}, error) { return struct{}{}, fn(ctx, m) }, Ack, opts)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, m M) Decision {
		_, d := handle(ctx, m)
		return d
	}, nil
}

// Processor is [Handler] for a function with a result, such as the messages
// that it wants to have published. A duplicate of a finished message has the same
// result: a consumer that died before it published them does so then. Where
// the result could not be kept, the decision is DeadLetter: nobody knows whether it was used.
func Processor[M, Out any](
	op *idem.Operation, key idem.KeyFunc[M], fn func(context.Context, M) (Out, error), opts ...idem.WrapOption,
) (func(context.Context, M) (Out, Decision), error) {
	if fn == nil {
		return nil, errNoHandler
	}
	return process(op, key, fn, DeadLetter, opts)
}

var errNoHandler = &idem.Error{Reason: idem.ErrConfig, Detail: "idemqueue: the handler is nil"}

// process makes a handler. omitted is what to do where the result was not kept.
func process[M, Out any](
	op *idem.Operation, key idem.KeyFunc[M], fn func(context.Context, M) (Out, error), omitted Action, opts []idem.WrapOption,
) (func(context.Context, M) (Out, Decision), error) {
	type ran struct{ failure error }
	type runKey struct{}
	wrapped, err := idem.Wrap(op, key, func(ctx context.Context, m M) (Out, error) {
		out, err := fn(ctx, m)
		ctx.Value(runKey{}).(*ran).failure = err //nolint:forcetypeassert // it is there: see below
		return out, err
	}, released(op, opts)...)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, m M) (Out, Decision) {
		r := new(ran)
		out, err := wrapped(context.WithValue(ctx, runKey{}, r), m)
		d := decide(op.Guarantee(), err, r.failure)
		if d.Action == Ack && errors.Is(err, idem.ErrResultOmitted) {
			d.Action = omitted
		}
		return out, d
	}, nil
}

// released puts the policy that suits brokers before opts.
func released(op *idem.Operation, opts []idem.WrapOption) []idem.WrapOption {
	if op == nil || op.Guarantee() != idem.AtLeastOnce {
		return opts
	}
	return append([]idem.WrapOption{idem.WithFailurePolicy(idem.PolicyRelease)}, opts...)
}

// decide says what the end of a call means for its message. failure is what
// the handler returned, if it ran.
func decide(g idem.Guarantee, err, failure error) Decision {
	e, ok := errors.AsType[*idem.Error](err)
	switch {
	case err == nil:
		return Decision{Action: Ack}
	case failure != nil:
		if g == idem.AtMostOnce { // it will not run again
			return Decision{Action: DeadLetter, Err: err}
		}
		return Decision{Action: Retry, Err: err}
	case !ok: // a stored failure: whoever stored it has decided
		return Decision{Action: DeadLetter, Err: err}
	case isAny(e.Reason, idem.ErrKeyExpired, idem.ErrResultOmitted), errors.Is(e.Reason, idem.ErrOutcomeUnknown) && e.Final:
		return Decision{Action: Ack, Err: err}
	case isAny(e.Reason, idem.ErrMismatch, idem.ErrInvalidKey):
		return Decision{Action: DeadLetter, Err: err}
	}
	return Decision{Action: Retry, Delay: e.RetryAfter, Err: err}
}

func isAny(err error, targets ...error) bool {
	for _, t := range targets {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}
