package idemevent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/idem-go/idem"
)

// Identified is an event that knows its identity.
type Identified interface {
	// IdempotencyKey returns the same text each time that the same event is
	// dispatched, and never that of another one.
	IdempotencyKey() string
}

type config[E any] struct {
	key  idem.KeyFunc[E]
	opts []idem.WrapOption
}

// Option configures listeners of events of the type E.
type Option[E any] func(*config[E])

// WithKey sets how an event is identified. Default: by its method IdempotencyKey.
func WithKey[E any](key idem.KeyFunc[E]) Option[E] {
	return func(c *config[E]) { c.key = key }
}

// With sets options of the calls: idem.WithWait, idem.WithInputFingerprint and
// the like. Default: failures free the key (idem.PolicyRelease) on AtLeastOnce.
func With[E any](opts ...idem.WrapOption) Option[E] {
	return func(c *config[E]) { c.opts = append(c.opts, opts...) }
}

// Listener returns fn as a listener that runs once for each event, in the key
// space name of the operation op. The same name, registered twice, is one
// listener. Its error is fn's own, or an [*idem.Error] that says why there is
// no answer: dispatch the event again if it is retryable. What a guard has
// begun is done, whatever came of it.
func Listener[E any](
	op *idem.Operation, name string, fn func(context.Context, E) error, opts ...Option[E],
) (func(context.Context, E) error, error) {
	switch {
	case strings.TrimSpace(name) == "":
		return nil, configError("the listener has no name: it is stored, so choose one that lasts")
	case fn == nil:
		return nil, configError("the listener %q is nil", name)
	}
	c := config[E]{key: identity[E]}
	for _, o := range opts {
		o(&c)
	}
	wrapOpts := []idem.WrapOption{idem.WithScope(name)}
	if op != nil && op.Guarantee() == idem.AtLeastOnce {
		wrapOpts = append(wrapOpts, idem.WithFailurePolicy(idem.PolicyRelease))
	}
	wrapped, err := idem.Wrap(op, c.key, func(ctx context.Context, e E) (struct{}, error) {
		return struct{}{}, fn(ctx, e)
	}, append(wrapOpts, c.opts...)...)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, e E) error {
		_, err := wrapped(ctx, e)
		if e, ok := errors.AsType[*idem.Error](err); ok && done(e) {
			return nil
		}
		return err
	}, nil
}

// done reports whether the listener has run, as far as it ever will.
func done(e *idem.Error) bool {
	return errors.Is(e.Reason, idem.ErrKeyExpired) || errors.Is(e.Reason, idem.ErrResultOmitted) ||
		errors.Is(e.Reason, idem.ErrOutcomeUnknown) && e.Final
}

func identity[E any](e E) (string, error) {
	if i, ok := any(e).(Identified); ok {
		return i.IdempotencyKey(), nil
	}
	if i, ok := any(&e).(Identified); ok {
		return i.IdempotencyKey(), nil
	}
	return "", fmt.Errorf("a %T has no method IdempotencyKey() string: add one, or use idemevent.WithKey", e)
}

// Dispatcher tells listeners of events. It is used concurrently.
type Dispatcher[E any] struct {
	op   *idem.Operation
	opts []Option[E]

	mu        sync.RWMutex
	names     map[string]bool
	listeners []func(context.Context, E) error
}

// NewDispatcher returns a dispatcher whose listeners run as the operation op.
func NewDispatcher[E any](op *idem.Operation, opts ...Option[E]) (*Dispatcher[E], error) {
	if op == nil {
		return nil, configError("the operation is nil: build one with idem.NewOperation")
	}
	return &Dispatcher[E]{op: op, opts: opts, names: map[string]bool{}}, nil
}

// Listen adds a listener; see [Listener].
func (d *Dispatcher[E]) Listen(name string, fn func(context.Context, E) error) error {
	l, err := Listener(d.op, name, fn, d.opts...)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names[name] {
		return configError("there are two listeners named %q: each needs a key space of its own", name)
	}
	d.names[name] = true
	d.listeners = append(d.listeners, l)
	return nil
}

// Dispatch tells each listener in the order in which they were added, all of
// them even if some fail, and joins their errors. Dispatched again, the event
// reaches those that have not completed.
func (d *Dispatcher[E]) Dispatch(ctx context.Context, e E) error {
	d.mu.RLock()
	listeners := d.listeners
	d.mu.RUnlock()
	errs := make([]error, 0, len(listeners))
	for _, l := range listeners {
		errs = append(errs, l(ctx, e))
	}
	return errors.Join(errs...)
}

// configError says what to write instead.
func configError(format string, args ...any) error {
	return &idem.Error{Reason: idem.ErrConfig, Detail: "idemevent: " + fmt.Sprintf(format, args...)}
}
