// Package idemasynq puts the rules of idemqueue under asynq's handlers: what a
// task does happens once for each key, even if the task is enqueued twice, or its worker dies after the effect.
//
//	once, err := idemasynq.Middleware(orders, idemasynq.Header("idempotency-key"))
//	mux.Use(once)
//	server := asynq.NewServer(redis, asynq.Config{RetryDelayFunc: idemasynq.RetryDelay(asynq.DefaultRetryDelayFunc), …})
//
//	decision    asynq is told
//	Ack         the task is done
//	Retry       it has failed and is tried again; where it is in progress elsewhere, see [RetryDelay]
//	DeadLetter  it has failed and is archived (asynq.SkipRetry)
package idemasynq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/transports/idemqueue"
)

// Header takes the key from a header of the task.
func Header(name string) idem.KeyFunc[*asynq.Task] {
	return func(t *asynq.Task) (string, error) { return t.Headers()[name], nil }
}

// TaskID takes the key from the task's ID, for producers that choose it
// (asynq.TaskID).
func TaskID(t *asynq.Task) (string, error) {
	if w := t.ResultWriter(); w != nil {
		return w.TaskID(), nil
	}
	return "", errors.New("the task does not come from a queue")
}

// work is a task and what handles it.
type work struct {
	*asynq.Task

	next asynq.Handler
}

// Middleware returns a middleware that runs tasks once for each key, as the
// operation op. The key space is the operation's and the type of the task.
func Middleware(op *idem.Operation, key idem.KeyFunc[*asynq.Task], opts ...idem.WrapOption) (asynq.MiddlewareFunc, error) {
	if key == nil {
		return nil, &idem.Error{Reason: idem.ErrConfig, Detail: "idemasynq: the key function is nil: use Header or TaskID"}
	}
	handle, err := idemqueue.Handler(op,
		func(w work) (string, error) {
			k, err := key(w.Task)
			if k == "" || err != nil {
				return "", err
			}
			return idem.JoinKey(w.Type(), k), nil
		},
		func(ctx context.Context, w work) error { return w.next.ProcessTask(ctx, w.Task) }, opts...)
	if err != nil {
		return nil, fmt.Errorf("idemasynq: %w", err)
	}
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
			d := handle(ctx, work{t, next})
			switch {
			case d.Action == idemqueue.Ack:
				return nil
			case d.Action == idemqueue.DeadLetter:
				return fmt.Errorf("%w: %w", d.Err, asynq.SkipRetry)
			case d.Delay > 0:
				return &delayedError{d.Err, d.Delay}
			}
			return d.Err
		})
	}, nil
}

// delayedError is why a task is to be tried again after a known time.
type delayedError struct {
	error

	delay time.Duration
}

func (e *delayedError) Unwrap() error { return e.error }

// RetryDelay has asynq wait for as long as a task's key is busy, and for as long as
// other says after any other failure.
func RetryDelay(other asynq.RetryDelayFunc) asynq.RetryDelayFunc {
	return func(n int, err error, t *asynq.Task) time.Duration {
		if e, ok := errors.AsType[*delayedError](err); ok {
			return e.delay
		}
		return other(n, err, t)
	}
}
