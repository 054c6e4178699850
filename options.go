package idem

import (
	"context"
	"log/slog"
	"reflect"
	"time"

	"github.com/idem-go/idem/codec"
)

// OperationOption sets something of an operation, in [NewOperation].
type OperationOption interface{ operationOption() }

// WrapOption sets something of a wrapped function.
type WrapOption interface{ wrapOption() }

// ExecuteOption sets something of one call.
type ExecuteOption interface {
	WrapOption
	executeOption()
}

// Option is an operation's default in [NewOperation], or an override for one call.
type Option interface {
	OperationOption
	ExecuteOption
}

// KeyOption says where a key lives. It goes to calls and to [Operation.Inspect],
// [Operation.Resolve] and [Operation.Forget].
type KeyOption interface {
	ExecuteOption
	keyOption()
}

// Markers that make a type an option; a constructor's type embeds what it may be used as.
type (
	forOperation struct{}
	forExecute   struct{}
	forBoth      struct {
		forOperation
		forExecute
	}
	forKey struct{ forExecute }
)

func (forOperation) operationOption() {}
func (forExecute) wrapOption()        {}
func (forExecute) executeOption()     {}
func (forKey) keyOption()             {}

type (
	onOption struct {
		forExecute
		op *Operation
	}
	scopeOption struct {
		forKey
		scope string
	}
	fenceOption struct {
		forKey
		fence int64
	}
	payloadOption struct {
		forExecute
		payload payload
	}
	durationOption struct {
		forBoth
		name duration
		d    time.Duration
	}
	policyOption struct {
		forBoth
		policy FailurePolicy
	}
	classifierOption struct {
		forBoth
		classifier ClassifierFunc
	}
	codecOption struct {
		forBoth
		write codec.Codec
		read  []codec.Codec
	}
	observerOption struct {
		forBoth
		observer Observer
	}
	failOpenOption struct{ forBoth }
	keySpaceOption struct {
		forOperation
		space string
	}
	maxResultOption struct {
		forOperation
		n int
	}
	tombstoneOption struct {
		forOperation
		d time.Duration
	}
	withoutOutcomesOption struct{ forOperation }
	withoutTextOption     struct{ forOperation }
	typeNameOption        struct {
		forOperation
		typ    reflect.Type
		name   string
		former []string
	}
	loggerOption struct {
		forOperation
		logger *slog.Logger
	}
)

func (Alias) wrapOption()    {}
func (Alias) executeOption() {}

// On runs the call as op. It is refused beside an [Alias].
func On(op *Operation) ExecuteOption { return onOption{op: op} }

// WithScope adds s to the key space, so that equal keys of different scopes
// (tenants, consumers) are different records. Given more than once, the scopes
// nest in their order. An empty scope is refused.
func WithScope(s string) KeyOption { return scopeOption{scope: s} }

// IfFence makes [Operation.Resolve] and [Operation.Forget] act only if the
// record still has the fence n, for an operator who has looked. A call of
// Execute refuses it. Default: the fence that the record has when it is read.
func IfFence(n int64) KeyOption { return fenceOption{fence: n} }

// WithFingerprint ties the key to the request v: a later call of the key with
// another value is refused with [ErrMismatch]. v is written as JSON and hashed
// in canonical form, in which the order of an object's members does not
// matter; with fields, only the members with these names (dots lead into objects)
// count. Bytes of JSON go in as a [encoding/json.RawMessage]. Default: no fingerprint.
func WithFingerprint(v any, fields ...string) ExecuteOption {
	return payloadOption{payload: payload{given: true, value: v, fields: fields}}
}

// WithFingerprintBytes is [WithFingerprint] over b as it is. Default: no fingerprint.
func WithFingerprintBytes(b []byte) ExecuteOption {
	return payloadOption{payload: payload{given: true, bytes: b, raw: true}}
}

// WithLeaseTTL sets how long a claim is good for without renewal: after a crash the
// key is blocked for at most this long. The lease is renewed at a third of it while the
// function runs. At least 1 ms. Default: [DefaultLeaseTTL].
func WithLeaseTTL(d time.Duration) Option { return durationOption{name: leaseTTL, d: d} }

// WithMaxLease sets how long a lease is renewed at most, so that a function
// that never returns does not block its key for ever. Default: [DefaultMaxLease].
func WithMaxLease(d time.Duration) Option { return durationOption{name: maxLease, d: d} }

// WithRetention sets how long an outcome is replayed; [RetainForever] is a
// value. For a guard it also bounds how long an uncertain key is remembered,
// counted from the end of the lease. Default: [DefaultRetention], for
// AtMostOnce [RetainForever].
func WithRetention(d time.Duration) Option { return durationOption{name: retention, d: d} }

// WithFailureRetention is [WithRetention] for stored failures. Default: as WithRetention.
func WithFailureRetention(d time.Duration) Option {
	return durationOption{name: failureRetention, d: d}
}

// WithWait sets how long a call waits for another one of the same key to
// end, before it returns [ErrInProgress]. Default: [DefaultWait], not at all.
func WithWait(d time.Duration) Option { return durationOption{name: wait, d: d} }

// WithFailurePolicy sets what a failure means for the key. AtLeastOnce only.
// Default: [DefaultFailurePolicy].
func WithFailurePolicy(p FailurePolicy) Option { return policyOption{policy: p} }

// WithClassifier sets who is asked first what a failure is. A call's classifier
// is asked before the operation's, then the driver's, then the default (see
// [ClassifierFunc]). Default: none.
func WithClassifier(f ClassifierFunc) Option { return classifierOption{classifier: f} }

// WithCodec sets the codec that writes results, and further ones that stored
// results may have been written with. The built-in codecs can always be read.
// Default: codec.MessagePack().
func WithCodec(write codec.Codec, read ...codec.Codec) Option {
	return codecOption{write: write, read: read}
}

// WithObserver sets who watches the calls. Default: nobody.
func WithObserver(o Observer) Option { return observerOption{observer: o} }

// WithFailOpen runs the function unprotected when the store cannot be asked.
// AtLeastOnce only. Default: off, the call fails with [ErrStore].
func WithFailOpen() Option { return failOpenOption{} }

// WithKeySpace sets the scope of the operation's keys in the store, so that
// an alias can be renamed. Operations of one registry that share a store must
// have different key spaces. Default: the alias.
func WithKeySpace(s string) OperationOption { return keySpaceOption{space: s} }

// WithMaxResultSize sets how many bytes an encoded result may have. The
// caller has a larger one, a duplicate gets [ErrResultOmitted]. Default:
// [DefaultMaxResultSize].
func WithMaxResultSize(n int) OperationOption { return maxResultOption{n: n} }

// WithTombstone sets for how long after the retention's end a late duplicate
// gets [ErrKeyExpired] instead of a new run. Default: off.
func WithTombstone(d time.Duration) OperationOption { return tombstoneOption{d: d} }

// WithoutOutcomes makes a guard forget how its runs ended: one round trip a call, and every
// duplicate gets [ErrOutcomeUnknown], final. AtMostOnce only. Default: outcomes are stored.
func WithoutOutcomes() OperationOption { return withoutOutcomesOption{} }

// WithoutErrorText keeps the texts of failures out of the store. A replay says
// then only what the authors of named errors put into them (see [Replayable]).
// Default: texts are stored.
func WithoutErrorText() OperationOption { return withoutTextOption{} }

// WithTypeName sets under which name values of T are stored, so that the type
// can be renamed or moved to another package; values stored under one of the
// former names are read as T too. Pointers to T count as T. Default: the
// import path and the name of the type.
func WithTypeName[T any](name string, former ...string) OperationOption {
	return typeNameOption{typ: baseType(reflect.TypeFor[T]()), name: name, former: former}
}

// WithLogger sets where notices go that somebody may have to act on: a lost lease,
// an outcome that could not be recorded, a run without protection. Default: [slog.Default].
func WithLogger(l *slog.Logger) OperationOption { return loggerOption{logger: l} }

// ContextWithRegistry returns a context whose calls find their operations in r.
func ContextWithRegistry(ctx context.Context, r *Registry) context.Context {
	return context.WithValue(ctx, registryKey{}, r)
}
