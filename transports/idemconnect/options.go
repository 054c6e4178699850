package idemconnect

import (
	"context"
	"fmt"
	"log/slog"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/transports/internal/rpc"
)

// The headers.
const (
	KeyHeader      = "Idempotency-Key"
	ReplayedHeader = "Idempotency-Replayed" // "true" on a replay
)

// Option configures the interceptor of handlers.
type Option interface{ apply(c *config) error }

type optionFunc func(*config) error

func (f optionFunc) apply(c *config) error { return f(c) }

type config struct {
	principal   func(context.Context, connect.AnyRequest) (string, error)
	shared      bool
	optional    bool
	fingerprint FingerprintFunc
	final       func(connect.Code) bool
	failed      func(connect.Code) bool
	logger      *slog.Logger
}

// ok is the code of a call that did not fail, for which Connect has no name.
const ok connect.Code = 0

func newConfig(opts []Option) (config, error) {
	c := config{
		fingerprint: deterministic,
		final:       func(code connect.Code) bool { return rpc.IsFinal(uint32(code)) },
		failed:      func(code connect.Code) bool { return code != ok },
		logger:      slog.Default(),
	}
	for _, o := range opts {
		if o == nil {
			return c, configError("an option is nil: leave it out")
		}
		if err := o.apply(&c); err != nil {
			return c, err
		}
	}
	return c, nil
}

// FingerprintFunc returns what a call's key is tied to; nil: to nothing.
type FingerprintFunc func(ctx context.Context, req proto.Message) ([]byte, error)

// deterministic is the default of [WithFingerprint].
func deterministic(_ context.Context, req proto.Message) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.MarshalAppend([]byte{}, req)
}

// WithPrincipal tells whose call it is (a tenant, a user), so that equal keys
// of two of them are different. An error that is a [connect.Error] is answered as it
// is, any other and an empty principal with permission_denied. Default: keys
// are shared by all callers of a procedure, and a warning is logged.
func WithPrincipal(f func(context.Context, connect.AnyRequest) (string, error)) Option {
	return optionFunc(func(c *config) error {
		if f == nil {
			return errNil("WithPrincipal")
		}
		c.principal = f
		return nil
	})
}

// WithoutPrincipal says that keys are meant to be shared by all callers of a
// procedure. Default: a warning is logged.
func WithoutPrincipal() Option {
	return optionFunc(func(c *config) error { c.shared = true; return nil })
}

// WithOptionalKey lets calls without a key pass through, unprotected.
// Default: they are answered invalid_argument.
func WithOptionalKey() Option {
	return optionFunc(func(c *config) error { c.optional = true; return nil })
}

// WithFingerprint sets what a key is tied to: the same key with another
// fingerprint is answered failed_precondition. Default: the request's bytes, as protobuf writes them
// deterministically.
func WithFingerprint(f FingerprintFunc) Option {
	return optionFunc(func(c *config) error {
		if f == nil {
			return errNil("WithFingerprint")
		}
		c.fingerprint = f
		return nil
	})
}

// WithFinal sets which codes are stored and replayed on a lease. After
// another one the operation's failure policy decides: by default the key is
// free. Default: all but canceled, unknown, deadline_exceeded, resource_exhausted,
// aborted, unimplemented, internal, unavailable and data_loss.
func WithFinal(f func(connect.Code) bool) Option {
	return optionFunc(func(c *config) error {
		if f == nil {
			return errNil("WithFinal")
		}
		c.final = f
		return nil
	})
}

// WithRollback sets which codes roll an ExactlyOnce transaction back; others
// commit and are replayed. Default: all.
func WithRollback(f func(connect.Code) bool) Option {
	return optionFunc(func(c *config) error {
		if f == nil {
			return errNil("WithRollback")
		}
		c.failed = func(code connect.Code) bool { return code != ok && f(code) }
		return nil
	})
}

// WithLogger sets where failures go that a client is not told of. Default: [slog.Default].
func WithLogger(l *slog.Logger) Option {
	return optionFunc(func(c *config) error {
		if l == nil {
			return errNil("WithLogger")
		}
		c.logger = l
		return nil
	})
}

func errNil(option string) error { return configError("%s: nil is no option: leave it out", option) }

// configError says what to write instead.
func configError(format string, args ...any) error {
	return &idem.Error{Reason: idem.ErrConfig, Detail: "idemconnect: " + fmt.Sprintf(format, args...)}
}
