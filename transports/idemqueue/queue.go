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
		return nil, errors.New("idemqueue: the handler is nil")
	}
	if op != nil && op.Guarantee() == idem.AtLeastOnce {
		opts = append([]idem.WrapOption{idem.WithFailurePolicy(idem.PolicyRelease)}, opts...)
	}
	type ran struct{ failure error }
	type runKey struct{}
	wrapped, err := idem.Wrap(op, key, func(ctx context.Context, m M) (struct{}, error) {
		err := fn(ctx, m)
		ctx.Value(runKey{}).(*ran).failure = err //nolint:forcetypeassert // it is there: see below
		return struct{}{}, err
	}, opts...)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, m M) Decision {
		r := new(ran)
		_, err := wrapped(context.WithValue(ctx, runKey{}, r), m)
		return decide(op.Guarantee(), err, r.failure)
	}, nil
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
