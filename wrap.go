package idem

import (
	"context"
	"errors"
	"reflect"
	"slices"
)

// KeyFunc takes the idempotency key out of an input. Queues and events use it too.
type KeyFunc[In any] func(in In) (string, error)

type inputFingerprintOption struct{ fields []string }

func (inputFingerprintOption) wrapOption() {}

// WithInputFingerprint ties each key to the input that it came with, see
// [WithFingerprint]. Default: no fingerprint.
func WithInputFingerprint(fields ...string) WrapOption { return inputFingerprintOption{fields: fields} }

// Wrap returns fn as a function that runs once for each key, as [Execute] does
// with the operation op. What is wrong with its arguments is refused here. An
// input without a key is an [*Error] of [ErrInvalidKey] that wraps the error of key.
func Wrap[In, Out any](
	op *Operation, key KeyFunc[In], fn func(context.Context, In) (Out, error), opts ...WrapOption,
) (func(context.Context, In) (Out, error), error) {
	switch {
	case !op.built():
		return nil, configError("", "Wrap: the operation is nil or does not come from NewOperation: build one")
	case key == nil:
		return nil, configError(op.alias, "Wrap: the key function is nil: use KeyPath, or write one")
	case fn == nil:
		return nil, configError(op.alias, "Wrap: the function is nil")
	}
	w := wrapped{opts: []ExecuteOption{On(op)}}
	for _, o := range opts {
		if err := w.add(o); err != nil {
			return nil, configError(op.alias, "Wrap: %w", err)
		}
	}
	probe := call{op: op}
	if _, err := probe.apply(w.opts); err != nil {
		return nil, configError(op.alias, "Wrap: %w", err)
	}
	if _, err := op.resultType(reflect.TypeFor[Out](), &probe.set); err != nil {
		return nil, configError(op.alias, "Wrap: %w", err)
	}
	return func(ctx context.Context, in In) (Out, error) {
		k, err := key(in)
		if err != nil {
			var zero Out
			return zero, &Error{Reason: ErrInvalidKey, Operation: op.alias, Detail: "the input has none", Err: err}
		}
		return Execute(ctx, k, func(ctx context.Context) (Out, error) { return fn(ctx, in) }, w.with(in)...)
	}, nil
}

// wrapped holds the options of a wrapped function.
type wrapped struct {
	opts        []ExecuteOption
	fingerprint *inputFingerprintOption
}

func (w *wrapped) add(o WrapOption) error {
	switch o := o.(type) {
	case nil:
		return errNil("Wrap")
	case onOption, Alias:
		return errors.New("its operation is the first argument: leave On and the alias out")
	case inputFingerprintOption:
		w.fingerprint = &o
	case ExecuteOption:
		w.opts = append(w.opts, o)
	}
	return nil
}

// with returns the options of one call.
func (w *wrapped) with(in any) []ExecuteOption {
	if w.fingerprint == nil {
		return w.opts
	}
	return append(slices.Clip(w.opts), WithFingerprint(in, w.fingerprint.fields...))
}

// JoinKey makes one key of several parts, so that no two lists of parts have
// the same key: ("a:b", "c") and ("a", "b:c") differ. Without parts, or with
// an empty one, it is "", which every call refuses.
func JoinKey(parts ...string) string {
	key := ""
	for _, part := range parts {
		if part == "" {
			return ""
		}
		key = appendPart(key, part)
	}
	return key
}
