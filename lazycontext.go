package idem

import (
	"context"
	"sync"
	"time"
)

// lazyContext derives a context that can be cancelled, at no cost until
// somebody waits for its end or it ends early: most functions on fast stores
// do neither. It is a [context.Context] like any of package context's;
// [context.Cause] finds the cause through Value.
type lazyContext struct {
	parent   context.Context //nolint:containedctx // it is a context
	detached bool            // the parent's end is not this one's
	deadline time.Time       // zero: none but the parent's

	mu     sync.Mutex
	inner  context.Context //nolint:containedctx // nil until it is needed
	cancel context.CancelCauseFunc
	stop   context.CancelFunc // frees the deadline's timer
	ended  bool
}

// Deadline implements [context.Context].
func (c *lazyContext) Deadline() (time.Time, bool) {
	if !c.deadline.IsZero() {
		return c.deadline, true
	}
	if c.detached {
		return time.Time{}, false
	}
	return c.parent.Deadline()
}

// Done implements [context.Context].
func (c *lazyContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.derive().Done()
}

// Err implements [context.Context].
func (c *lazyContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err()
}

// err is Err; the caller holds mu.
func (c *lazyContext) err() error {
	switch {
	case c.inner != nil:
		return c.inner.Err()
	case c.ended:
		return context.Canceled
	case !c.deadline.IsZero() && !time.Now().Before(c.deadline):
		return context.DeadlineExceeded
	case c.detached:
		return nil
	}
	return c.parent.Err()
}

// Value implements [context.Context].
func (c *lazyContext) Value(key any) any {
	c.mu.Lock()
	inner := c.inner
	c.mu.Unlock()
	switch {
	case inner != nil:
		return inner.Value(key)
	case c.detached:
		return context.WithoutCancel(c.parent).Value(key)
	}
	return c.parent.Value(key)
}

// end cancels the context; cause may be nil.
func (c *lazyContext) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner == nil && cause == nil && c.err() == nil {
		c.ended = true
		return
	}
	c.derive() // before it counts as ended: the cause, or what the parent ended with, must stay
	c.ended = true
	c.cancel(cause)
	c.stop()
}

// derive makes the real context. The caller holds mu.
func (c *lazyContext) derive() context.Context {
	if c.inner != nil {
		return c.inner
	}
	parent := c.parent
	if c.detached || c.ended {
		parent = context.WithoutCancel(parent)
	}
	c.inner, c.cancel = context.WithCancelCause(parent)
	c.stop = func() {}
	switch {
	case c.ended:
		c.cancel(nil)
	case !c.deadline.IsZero():
		c.inner, c.stop = context.WithDeadline(c.inner, c.deadline)
	}
	return c.inner
}
