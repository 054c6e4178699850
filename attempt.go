package idem

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"
)

// Attempt is one run of an operation's function. Its methods are called
// concurrently, while the function runs.
type Attempt struct {
	call   *call
	fence  int64
	number int

	mu          sync.Mutex
	ended       bool
	doNotRecord bool
	retain      time.Duration   // 0: as the options say
	steps       map[string]bool // running or finished, by path
}

type attemptKey struct{}

// FromContext returns the run that ctx belongs to: the innermost one, if runs are nested.
func FromContext(ctx context.Context) (*Attempt, bool) {
	a, ok := ctx.Value(attemptKey{}).(*Attempt)
	return a, ok
}

// runContext is the context that a function runs in.
type runContext struct {
	lazyContext
	attempt Attempt
}

// Value implements [context.Context].
func (c *runContext) Value(key any) any {
	if key == (attemptKey{}) && !c.attempt.call.op.inner {
		return &c.attempt
	}
	return c.lazyContext.Value(key)
}

// Operation returns the alias of the operation.
func (a *Attempt) Operation() Alias { return a.call.op.alias }

// Key returns the key as the caller gave it.
func (a *Attempt) Key() string { return a.call.info.Key }

// Fence returns the fencing token of the run: a number that is higher than
// that of every run of the key before. An effect that keeps the highest fence
// it has seen can refuse a run that has lost its lease. (See M. Kleppmann, "How to do
// distributed locking", 2016.) It is 0 in a run that failed open.
func (a *Attempt) Fence() int64 { return a.fence }

// Number returns which attempt of the key's current generation this is, from 1.
func (a *Attempt) Number() int { return a.number }

// Extend prolongs the lease to at least d from now, for a step that is known to
// take long. It never goes beyond [WithMaxLease]. It returns an [*Error] of
// [ErrLeaseLost] if the lease is lost, of [ErrStore] if the store could not be asked,
// and one that wraps [errors.ErrUnsupported] where there is no lease to
// extend: in an ExactlyOnce run, under [WithoutOutcomes], in a run that failed open.
func (a *Attempt) Extend(ctx context.Context, d time.Duration) error {
	if err := checkDuration("Extend", d); err != nil {
		return a.call.fail(ErrConfig, err)
	}
	if a.over() {
		return a.call.fail(ErrLeaseLost, errors.New("the function has returned"))
	}
	if a.call.beat.c == nil {
		return &Error{Reason: ErrConfig, Operation: a.Operation(), Key: a.Key(), Detail: "there is no lease to extend", Err: errors.ErrUnsupported}
	}
	return a.call.beat.extend(ctx, d)
}

// Retain sets how long the outcome of this run is replayed, in place of
// [WithRetention] and [WithFailureRetention].
func (a *Attempt) Retain(d time.Duration) error {
	if err := checkDuration("Retain", d); err != nil {
		return a.call.fail(ErrConfig, err)
	}
	return a.ask(func() { a.retain = d })
}

// DoNotRecord makes the call return its value without storing it: a lease is
// released, so that the next call runs again; a guard's key stays uncertain.
// An ExactlyOnce run refuses it: its record is what makes it run once.
func (a *Attempt) DoNotRecord() error {
	if a.call.op.guarantee == ExactlyOnce {
		return a.call.fail(ErrConfig, errors.New("DoNotRecord in an ExactlyOnce run: return an error to roll back"))
	}
	return a.ask(func() { a.doNotRecord = true })
}

// ask notes what the function asks for, which is too late once it has returned.
func (a *Attempt) ask(note func()) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return a.call.fail(ErrConfig, errors.New("the function has returned"))
	}
	note()
	return nil
}

// addStep notes the path of a step and reports whether it is new.
func (a *Attempt) addStep(path string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.steps[path] {
		return false
	}
	if a.steps == nil {
		a.steps = map[string]bool{}
	}
	a.steps[path] = true
	return true
}

// dropStep forgets a step that failed, and those inside it, so that it can be tried again.
func (a *Attempt) dropStep(path string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for p := range a.steps {
		if strings.HasPrefix(p, path) { // parts stand behind their lengths: none is the beginning of another
			delete(a.steps, p)
		}
	}
}

// end marks the run as over and returns what it asked for.
func (a *Attempt) end() (doNotRecord bool, retain time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	return a.doNotRecord, a.retain
}

func (a *Attempt) over() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ended
}
