package idem

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/idem-go/idem/driver"
)

// call is the state of one call of Execute.
type call struct {
	work work
	op   *Operation
	set  settings // the operation's, with the call's overrides
	info Info

	key         driver.Key
	token       driver.Token
	fingerprint []byte
	typ         resultType
	outer       *Attempt     // the run that this call is made in; nil: none
	joins       bool         // inside a transaction of the same store
	member      *batchMember // of a batch; nil: the call is alone

	start     time.Time
	waitUntil time.Time
	flight    flight

	generation int64 // of the claim that runs
	over       int64 // the fence of the uncertain record that it reconciles; 0: none

	leaseEnd time.Time // counted from before the claim was sent
	run      *runContext
	first    runContext // what run points to, but for a function that is run again
	beat     heartbeat
	omit     bool // the store could not hold the outcome's body
}

// execute runs w for the key.
func execute(ctx context.Context, key string, w work, opts []ExecuteOption) error {
	c := w.state()
	c.work = w
	if err := c.prepare(ctx, key, opts); err != nil {
		return err
	}
	return c.begin(ctx)
}

// begin asks the store and runs the function, or answers without it.
func (c *call) begin(ctx context.Context) (err error) {
	_, _ = rand.Read(c.token[:]) // never fails
	c.start = time.Now()
	c.waitUntil = c.start.Add(c.set.wait)
	if c.set.observer.Begin != nil {
		if observed := c.set.observer.Begin(ctx, c.info); observed != nil {
			ctx = observed
		}
	}
	if c.set.observer.End != nil {
		defer func() { c.set.observer.End(ctx, c.info, err, time.Since(c.start)) }()
	}
	if ctx.Err() != nil {
		return c.cancelled(ctx, ErrStore, "the context ended before the call")
	}
	if err, ok := c.answerLocally(); ok {
		return err
	}
	return c.answerOrRun(ctx)
}

// prepare checks everything that the caller can get wrong, before anything is sent.
func (c *call) prepare(ctx context.Context, key string, opts []ExecuteOption) error {
	c.info.Key = key
	if err := c.findOperation(ctx, opts); err != nil {
		return err
	}
	c.info.Operation = c.op.alias
	scope, err := c.apply(opts)
	if err != nil {
		return c.fail(ErrConfig, err)
	}
	if !c.work.callable() {
		return c.fail(ErrConfig, errors.New("the function is nil"))
	}
	if blank(key) {
		return c.fail(ErrInvalidKey, errors.New("the key is blank: use what identifies the request, an order's number for example"))
	}
	if c.typ, err = c.op.resultType(c.work.resultType(), &c.set); err != nil {
		return c.fail(ErrConfig, err)
	}
	c.key = driver.Key{Scope: scope, ID: shorten(key)}
	if err := c.nest(ctx); err != nil {
		return c.fail(ErrConfig, err)
	}
	return nil
}

// findOperation picks the operation that the call runs as.
func (c *call) findOperation(ctx context.Context, opts []ExecuteOption) (err error) {
	var alias Alias
	for _, o := range opts {
		switch o := o.(type) {
		case onOption:
			if !o.op.built() || c.op != nil {
				return c.fail(ErrConfig, errors.New("On takes one operation, which is not nil and comes from NewOperation"))
			}
			c.op = o.op
		case Alias:
			if o == "" || alias != "" {
				return c.fail(ErrConfig, errors.New("give one alias, which is not empty"))
			}
			alias = o
		}
	}
	if c.op != nil && alias != "" {
		return c.fail(ErrConfig, errors.New("the call has both On and an alias: leave one out"))
	}
	if c.op == nil {
		c.op, err = find(ctx, alias)
	}
	return err
}

// apply takes over the options of the call and returns the scope of its key.
func (c *call) apply(opts []ExecuteOption) (string, error) {
	c.set = c.op.defaults
	c.set.classifier = nil // the operation's is asked after the call's
	var nested []string
	for _, o := range opts {
		switch o := o.(type) {
		case onOption, Alias:
		case scopeOption:
			if o.scope == "" {
				return "", errors.New("WithScope: the scope is empty: leave the option out")
			}
			nested = append(nested, o.scope)
		case payloadOption:
			var err error
			if c.fingerprint, err = o.payload.fingerprint(c.op.fingerprintKey); err != nil {
				return "", err
			}
		case fenceOption:
			return "", errors.New("IfFence is for Resolve and Forget: leave it out")
		default:
			known, err := c.set.set(o, c.op.guarantee)
			if err != nil {
				return "", err
			}
			if !known {
				return "", errNil("Execute")
			}
		}
	}
	if err := c.set.check(c.op.caps); err != nil {
		return "", err
	}
	if nested == nil {
		return c.op.scope, nil
	}
	return joinScope(c.op.space, nested...), nil
}

// fail returns an error of the call.
func (c *call) fail(reason, err error) *Error {
	e := &Error{Reason: reason, Key: c.info.Key, Err: err}
	if c.op != nil {
		e.Operation = c.op.alias
	}
	if reason == ErrConfig || reason == ErrInvalidKey { //nolint:errorlint // the sentinels themselves
		e.Detail = err.Error()
	}
	return e
}

// failLike returns an error of the call for the reason of another call's.
func (c *call) failLike(other error) *Error {
	o, ok := errors.AsType[*Error](other)
	if !ok {
		return c.fail(ErrStore, other)
	}
	e := *o
	e.Operation, e.Key = c.op.alias, c.info.Key
	return &e
}

// cancelled returns an error of a call whose context ended while there was no answer.
func (c *call) cancelled(ctx context.Context, reason error, detail string) *Error {
	e := c.fail(reason, ctx.Err())
	e.Detail = detail
	if cause := context.Cause(ctx); cause != ctx.Err() { //nolint:errorlint // the very value
		e.Err = errors.Join(ctx.Err(), cause)
	}
	return e
}
