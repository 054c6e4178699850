package idem

import (
	"context"
	"reflect"
)

// Execute runs fn for the key at most as often as the operation's guarantee
// allows, and returns what it returned; a call of a key that has an outcome
// returns that one without running fn.
//
// The operation comes from [On], or by [Alias] from the registry in the context, or is the
// registry's default. fn's context carries the [Attempt] (see [FromContext]), is
// cancelled with ctx, and is cancelled before the lease ends if the lease
// cannot be renewed, with [ErrLeaseLost] as its cause. If ctx ends after fn
// was entered, its outcome is recorded all the same.
//
// An error is one of three: an [*Error] says that there is no fresh answer
// (branch on its reason with [errors.Is]), a [*ReplayedError] is a stored
// failure, and anything else is fn's own error, unchanged, together with the
// value that fn returned. Wrong options and keys are refused before the store
// is asked. A panic or runtime.Goexit of fn settles the key and goes on.
//
// No goroutine outlives the call, so a driver's renewal that ignores the end of its
// context, or an observer that blocks, holds it up.
func Execute[T any](ctx context.Context, key string, fn func(context.Context) (T, error), opts ...ExecuteOption) (T, error) {
	if fn != nil {
		if v, ok := localValue[T](ctx, key, opts); ok {
			return v, nil
		}
	}
	return executeFully(ctx, key, fn, opts)
}

func executeFully[T any](ctx context.Context, key string, fn func(context.Context) (T, error), opts []ExecuteOption) (T, error) {
	r := runner[T]{fn: fn}
	err := execute(ctx, key, &r, opts)
	return r.value, err
}

// Result is a value and how it came about.
type Result[T any] struct {
	Info

	Value T
}

// ExecuteResult is [Execute] with details, which are set on an error too.
func ExecuteResult[T any](ctx context.Context, key string, fn func(context.Context) (T, error), opts ...ExecuteOption) (Result[T], error) {
	r := runner[T]{fn: fn}
	err := execute(ctx, key, &r, opts)
	return Result[T]{Value: r.value, Info: r.info}, err
}

// Do is [Execute] for a function without a value.
func Do(ctx context.Context, key string, fn func(context.Context) error, opts ...ExecuteOption) error {
	r := runner[struct{}]{}
	if fn != nil {
		r.fn = func(ctx context.Context) (struct{}, error) { return struct{}{}, fn(ctx) }
	}
	return execute(ctx, key, &r, opts)
}

// runner is a call together with the parts of it that depend on the type of
// its result. The engine sees it as a [work].
type runner[T any] struct {
	call

	fn    func(context.Context) (T, error)
	value T
}

// work is what the engine needs of a runner.
type work interface {
	state() *call
	callable() bool
	invoke(ctx context.Context) error // runs the function and keeps its value
	target() any                      // a pointer to the value
	copied() any                      // the value itself
	reset()                           // zeroes the value
	resultType() reflect.Type
}

func (r *runner[T]) state() *call             { return &r.call }
func (r *runner[T]) callable() bool           { return r.fn != nil }
func (r *runner[T]) target() any              { return &r.value }
func (r *runner[T]) copied() any              { return r.value }
func (r *runner[T]) resultType() reflect.Type { return reflect.TypeFor[T]() }

func (r *runner[T]) reset() {
	var zero T
	r.value = zero
}

func (r *runner[T]) invoke(ctx context.Context) (err error) {
	r.value, err = r.fn(ctx)
	return err
}
