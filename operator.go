package idem

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/idem-go/idem/driver"
)

// Record is what the store has for a key.
type Record struct {
	Info

	State     driver.State
	ClaimedAt time.Time     // when the last run began, by the store's clock
	LeaseLeft time.Duration // of a claim; 0: lapsed
	LifeLeft  time.Duration // until the outcome expires, or its tombstone; RetainForever: never
}

// Outcome is what somebody found out about an uncertain key.
type Outcome struct {
	action driver.ResolveAction
	value  any
	err    error
}

// Succeeded: it ran, and v is its result, of the type that the calls ask for;
// nil for calls of [Do]. Duplicates replay it.
func Succeeded(v any) Outcome {
	if v == nil {
		v = struct{}{}
	}
	return Outcome{action: driver.ResolveCompleted, value: v}
}

// Failed: it ran and failed with err. Duplicates replay it.
func Failed(err error) Outcome { return Outcome{action: driver.ResolveCompleted, err: err} }

// NotRun: it had no effect. The next call runs it.
func NotRun() Outcome { return Outcome{action: driver.ResolveNotRun} }

// Inspect reads the record of a key without changing it. ok is false if there is none.
func (op *Operation) Inspect(ctx context.Context, key string, opts ...KeyOption) (rec Record, ok bool, err error) {
	c, _, err := op.operator(key, opts)
	if err != nil {
		return Record{}, false, err
	}
	r, ok, err := c.inspect(ctx)
	if err != nil || !ok {
		return Record{}, false, err
	}
	c.info.Fence, c.info.Attempt, c.info.CompletedAt = r.Fence, r.Attempt, r.CompletedAt
	c.info.Recorded = r.State == driver.StateCompleted
	return Record{Info: c.info, State: r.State, ClaimedAt: r.ClaimedAt, LeaseLeft: r.LeaseLeft, LifeLeft: r.LifeLeft}, true, nil
}

// Resolve settles an uncertain key with what somebody found out about it. It is an
// [*Error] of [ErrInProgress] if a live run has the key, and of [ErrConfig] if the key is not
// uncertain, or changed since it was looked at (see [IfFence]). The owner of
// a run that was given up for lost cannot overwrite the resolution.
func (op *Operation) Resolve(ctx context.Context, key string, o Outcome, opts ...KeyOption) error {
	c, fence, err := op.operator(key, opts)
	if err != nil {
		return err
	}
	c.enter(ctx) // for notices
	p := driver.ResolveParams{
		Key: c.key, Action: o.action, Retention: c.set.retention, Tombstone: op.tombstone, Format: recordFormat,
	}
	switch {
	case o.action == driver.ResolveCompleted && o.err == nil && o.value == nil:
		return c.fail(ErrConfig, errors.New("Failed(nil): give the error that it failed with, or use Succeeded"))
	case o.err != nil:
		p.Outcome = c.encodeFailure(o.err)
		p.Retention = c.retention(true)
	case o.action == driver.ResolveCompleted:
		if p.Outcome, err = c.encodeFound(o.value); err != nil {
			return c.fail(ErrConfig, err)
		}
	case o.action == 0:
		return c.fail(ErrConfig, errors.New("the outcome is empty: use Succeeded, Failed or NotRun"))
	}
	return c.resolve(ctx, p, fence)
}

// Forget deletes what is known of a key, so that the next call runs it as if
// it had never been. It is an [*Error] of [ErrInProgress] if a live run has the key.
// To forget a key that is not there succeeds.
func (op *Operation) Forget(ctx context.Context, key string, opts ...KeyOption) error {
	c, fence, err := op.operator(key, opts)
	if err != nil {
		return err
	}
	return c.resolve(ctx, driver.ResolveParams{Key: c.key, Action: driver.ResolveForget, Format: recordFormat}, fence)
}

// operator prepares a call that runs nothing.
func (op *Operation) operator(key string, opts []KeyOption) (c *call, fence int64, err error) {
	if !op.built() {
		return nil, 0, configError("", "the operation is nil or does not come from NewOperation: build one")
	}
	c = &call{op: op, set: op.defaults, info: Info{Operation: op.alias, Key: key}}
	if blank(key) {
		return nil, 0, c.fail(ErrInvalidKey, errors.New("the key is blank"))
	}
	var nested []string
	for _, o := range opts {
		switch o := o.(type) {
		case scopeOption:
			if o.scope == "" {
				return nil, 0, c.fail(ErrConfig, errors.New("WithScope: the scope is empty: leave the option out"))
			}
			nested = append(nested, o.scope)
		case fenceOption:
			if o.fence <= 0 {
				return nil, 0, c.fail(ErrConfig, fmt.Errorf("IfFence(%d): a fence is above 0: take it from Inspect", o.fence))
			}
			fence = o.fence
		default:
			return nil, 0, c.fail(ErrConfig, errNil("a KeyOption"))
		}
	}
	c.key = driver.Key{Scope: joinScope(op.space, nested...), ID: shorten(key)}
	return c, fence, nil
}

func (c *call) inspect(ctx context.Context) (driver.Record, bool, error) {
	i, ok := driver.As[driver.Inspector](c.op.driver)
	if !ok {
		return driver.Record{}, false, c.lacks("driver.Inspector")
	}
	res, err := i.Inspect(ctx, driver.InspectParams{Key: c.key})
	if err != nil {
		return driver.Record{}, false, c.storeError(ctx, err)
	}
	return res.Record, res.Found, nil
}

// resolve carries out p on the record with the fence, or on the one that is
// there now if that is 0.
func (c *call) resolve(ctx context.Context, p driver.ResolveParams, fence int64) error {
	r, ok := driver.As[driver.Resolver](c.op.driver)
	if !ok {
		return c.lacks("driver.Resolver")
	}
	defer c.op.forget(c.key)
	p.Fence = fence
	if fence == 0 {
		rec, found, err := c.inspect(ctx)
		if err != nil {
			return err
		}
		if !found {
			return c.unresolved(p, driver.ResolveResult{})
		}
		p.Fence = rec.Fence
	}
	res, err := r.Resolve(ctx, p)
	if err != nil {
		return c.storeError(ctx, err)
	}
	if res.Applied {
		return nil
	}
	return c.unresolved(p, res)
}

// unresolved says why the action does not apply to what there is.
func (c *call) unresolved(p driver.ResolveParams, is driver.ResolveResult) error {
	switch {
	case is.State == 0 && p.Action == driver.ResolveForget:
		return nil
	case is.State == 0:
		return c.fail(ErrConfig, errors.New("there is no record to resolve: the key has not run, or it has expired"))
	case is.State == driver.StateClaimed && is.LeaseLeft > 0:
		return c.inFlight(driver.ClaimResult{LeaseLeft: is.LeaseLeft})
	case is.Fence != p.Fence:
		return c.fail(ErrConfig, fmt.Errorf("the record has the fence %d now, not %d: look at it again", is.Fence, p.Fence))
	}
	return c.fail(ErrConfig, fmt.Errorf("the record is %v: only an uncertain one can be resolved; see Forget", is.State))
}

func (c *call) lacks(ability string) error {
	e := c.fail(ErrConfig, fmt.Errorf("the driver %s is no %s", c.op.caps.Name, ability))
	e.Err = errors.ErrUnsupported
	return e
}

// encodeFound returns the stored form of a value that no function returned.
func (c *call) encodeFound(v any) ([]byte, error) {
	t := reflect.TypeOf(v)
	typ, err := c.op.resultType(t, &c.set)
	if err != nil {
		return nil, err
	}
	target := reflect.New(t)
	target.Elem().Set(reflect.ValueOf(v))
	return c.encodeTarget(typ.name, target.Interface())
}
