package idemgrpc

import (
	"context"
	"log/slog"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/idem-go/idem/transports/internal/rpc"
)

// The entries of metadata. gRPC compares their names in lower case.
const (
	KeyEntry      = rpc.KeyEntry
	ReplayedEntry = rpc.ReplayedEntry // a header: "true" on a replay
)

// Option configures the server's interceptor.
type Option interface{ apply(c *config) error }

type optionFunc func(*config) error

func (f optionFunc) apply(c *config) error { return f(c) }

type config struct {
	principal   func(context.Context) (string, error)
	shared      bool
	optional    bool
	fingerprint FingerprintFunc
	final       func(codes.Code) bool
	failed      func(codes.Code) bool
	services    []*grpc.ServiceDesc
	logger      *slog.Logger
}

func newConfig(opts []Option) (config, error) {
	c := config{
		fingerprint: deterministic,
		final:       func(code codes.Code) bool { return rpc.IsFinal(uint32(code)) },
		failed:      func(code codes.Code) bool { return code != codes.OK },
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
// of two of them are different. An error that is a status is answered as it
// is, any other and an empty principal with PERMISSION_DENIED. Default: keys
// are shared by all callers of a method, and a warning is logged.
func WithPrincipal(f func(context.Context) (string, error)) Option {
	return optionFunc(func(c *config) error {
		if f == nil {
			return errNil("WithPrincipal")
		}
		c.principal = f
		return nil
	})
}

// WithoutPrincipal says that keys are meant to be shared by all callers of a
// method. Default: a warning is logged.
func WithoutPrincipal() Option {
	return optionFunc(func(c *config) error { c.shared = true; return nil })
}

// WithOptionalKey lets calls without a key pass through, unprotected.
// Default: they are answered INVALID_ARGUMENT.
func WithOptionalKey() Option {
	return optionFunc(func(c *config) error { c.optional = true; return nil })
}

// WithFingerprint sets what a key is tied to: the same key with another
// fingerprint is answered FAILED_PRECONDITION. Default: the request's bytes, as protobuf writes them
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
// free. Default: all but CANCELLED, UNKNOWN, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED,
// ABORTED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE and DATA_LOSS.
func WithFinal(f func(codes.Code) bool) Option {
	return optionFunc(func(c *config) error {
		if f == nil {
			return errNil("WithFinal")
		}
		c.final = f
		return nil
	})
}

// WithRollback sets which codes roll an ExactlyOnce transaction back; others
// commit and are replayed. Default: all but OK.
func WithRollback(f func(codes.Code) bool) Option {
	return optionFunc(func(c *config) error {
		if f == nil {
			return errNil("WithRollback")
		}
		c.failed = f
		return nil
	})
}

// WithServices describes services that are not made from a proto file of the
// program, so that their methods are known. Default: what the program's generated code
// registers.
func WithServices(descs ...*grpc.ServiceDesc) Option {
	return optionFunc(func(c *config) error {
		for _, d := range descs {
			if d == nil {
				return errNil("WithServices")
			}
		}
		c.services = append(c.services, descs...)
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
