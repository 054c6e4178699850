package idem

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/idem-go/idem/driver"
)

// ReconcileFunc asks the outside what happened to an uncertain key: the
// payment provider, the bank's statement. It answers [Succeeded], [Failed] or
// [NotRun]; after an error the key stays uncertain.
type ReconcileFunc func(ctx context.Context, key string) (Outcome, error)

type reconcileOption struct {
	forBoth
	reconcile ReconcileFunc
}

// WithReconcile settles an uncertain key when a call meets it, in place of
// [ErrOutcomeUnknown]: f is asked under an exclusive claim that is renewed
// while f runs, so of several callers one asks, and the others wait or are told that it is
// running. Succeeded and Failed are stored and replayed, after NotRun the
// function runs. If f fails, panics or its process dies, the key is uncertain as before.
// Default: nobody is asked.
func WithReconcile(f ReconcileFunc) Option { return reconcileOption{reconcile: f} }

// reconciles reports whether the call asks the outside after the answer res.
func (c *call) reconciles(res driver.ClaimResult) bool {
	return res.Decision == driver.DecisionUncertain && c.set.reconcile != nil &&
		driver.SameFingerprint(res.Fingerprint, c.fingerprint)
}

// claimUncertain claims the uncertain record res, to find out what it is.
func (c *call) claimUncertain(ctx context.Context, res driver.ClaimResult) (driver.ClaimResult, error) {
	c.over = res.Fence
	return c.claim(ctx)
}

// reconcile asks what happened to the key. It is not done if the function is to run.
func (c *call) reconcile(claim driver.ClaimResult) (t transition, done bool, err error) {
	t = c.uncertain()
	o, err := c.set.reconcile(c.run, c.info.Key)
	if err != nil {
		return t, true, c.unreconciled(err)
	}
	switch {
	case o.action == driver.ResolveNotRun:
		return t, false, nil
	case o.action != driver.ResolveCompleted:
		return t, true, c.unreconciled(errors.New("WithReconcile: the outcome is empty: use Succeeded, Failed or NotRun"))
	case o.err == nil && o.value == nil:
		return t, true, c.unreconciled(errors.New("WithReconcile: Failed(nil): give the error that it failed with"))
	case o.err != nil:
		t = transition{failure: o.err, outcome: c.encodeFailure(o.err), retention: c.retention(true)}
	default:
		outcome, err := c.encodeFound(o.value)
		if err == nil && baseType(reflect.TypeOf(o.value)) != baseType(c.work.resultType()) {
			err = fmt.Errorf("WithReconcile: Succeeded has a %T, the call wants a %v", o.value, c.work.resultType())
		}
		if err != nil {
			return t, true, c.unreconciled(err)
		}
		t = transition{outcome: outcome, retention: c.retention(false)}
	}
	t.to = driver.StateCompleted
	err = c.answer(completed(claim, t.outcome))
	c.info.Recorded = false // until the store has it
	return t, true, err
}

// unreconciled says that the key is as uncertain as before; another try may
// learn more.
func (c *call) unreconciled(err error) *Error {
	e := c.fail(ErrOutcomeUnknown, err)
	e.Detail = "nobody could say what happened"
	return e
}
