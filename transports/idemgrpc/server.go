package idemgrpc

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/transports/internal/rpc"
)

// UnaryServerInterceptor returns an interceptor that runs each of the methods
// as its operation; their names are those of the generated constants, such as
// /payments.v1.Payments/Charge. Other methods pass through. What cannot be protected is refused here: a
// streaming method, one that nobody knows. Guarantees over gRPC:
//
//   - AtLeastOnce: after a code that is not final (see [WithFinal]) the key
//     is free, so that a retry runs again;
//   - AtMostOnce: whatever the handler answers is stored; a handler that
//     never answered is OUTCOME_UNKNOWN;
//   - ExactlyOnce: the handler finds its transaction in its context; a
//     failing code (see [WithRollback]) rolls it back.
func UnaryServerInterceptor(methods map[string]*idem.Operation, opts ...Option) (grpc.UnaryServerInterceptor, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	if len(methods) == 0 {
		return nil, configError("no method is named: give each that is to be protected its operation")
	}
	s := &server{config: c, methods: make(map[string]*idem.Operation, len(methods))}
	for name, op := range methods {
		if err := c.checkMethod(name, op); err != nil {
			return nil, err
		}
		s.methods[name] = op
	}
	if c.principal == nil && !c.shared {
		c.logger.Warn("idemgrpc: no principal is configured: a caller who guesses another's key gets the other's answer; " +
			"use WithPrincipal, or WithoutPrincipal if that is meant")
	}
	return s.intercept, nil
}

type server struct {
	config

	methods map[string]*idem.Operation
}

// intercept implements [grpc.UnaryServerInterceptor].
func (s *server) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	op, ok := s.methods[info.FullMethod]
	if !ok {
		return handler(ctx, req)
	}
	md, _ := metadata.FromIncomingContext(ctx)
	key, problem := rpc.Key(md.Get(KeyEntry))
	switch {
	case problem != "":
		return nil, newStatus(KeyInvalid, problem, 0).Err()
	case key == "" && s.optional:
		return handler(ctx, req)
	case key == "":
		return nil, newStatus(KeyMissing, "", 0).Err()
	}
	opts, err := s.options(ctx, op, req, info.FullMethod)
	if err != nil {
		return nil, err
	}
	return s.run(ctx, op, key, func(ctx context.Context) (any, error) { return handler(ctx, req) }, opts)
}

// options returns the options of the call, or the status that it ends with.
func (s *server) options(ctx context.Context, op *idem.Operation, req any, method string) ([]idem.ExecuteOption, error) {
	opts := []idem.ExecuteOption{idem.On(op), idem.WithScope(method)}
	if op.Guarantee() == idem.AtLeastOnce {
		opts = append(opts, idem.WithClassifier(classify))
	}
	if s.principal != nil {
		principal, err := s.principal(ctx)
		if _, is := status.FromError(err); err != nil && is {
			return nil, err
		}
		if err != nil || principal == "" {
			return nil, newStatus(Forbidden, "", 0).Err()
		}
		opts = append(opts, idem.WithScope(principal))
	}
	m, ok := req.(proto.Message)
	if !ok {
		return nil, s.misconfigured(ctx, fmt.Errorf("the request of %s is a %T, which is no message", method, req))
	}
	fingerprint, err := s.fingerprint(ctx, m)
	if err != nil {
		return nil, s.misconfigured(ctx, fmt.Errorf("the request of %s has no fingerprint: %w", method, err))
	}
	if fingerprint != nil {
		opts = append(opts, idem.WithFingerprintBytes(fingerprint))
	}
	return opts, nil
}

// failure ends a run whose answer is not stored.
type failure struct{ error }

// classify is the classifier of calls on a lease: such an answer is passing.
func classify(err error) idem.FailureKind {
	if _, ok := err.(*failure); ok { //nolint:errorlint // the very value
		return idem.KindInfrastructure
	}
	return idem.KindUnknown
}

// run runs the handler under the key, or answers without it.
func (s *server) run(
	ctx context.Context, op *idem.Operation, key string, handler func(context.Context) (any, error), opts []idem.ExecuteOption,
) (any, error) {
	var ran answer
	res, err := idem.ExecuteResult(ctx, key, func(ctx context.Context) (Response, error) {
		ran = answered(handler(ctx))
		if op.Guarantee() == idem.AtLeastOnce && !s.final(ran.code) || op.Guarantee() == idem.ExactlyOnce && s.failed(ran.code) {
			return Response{}, &failure{ran.err}
		}
		return ran.stored()
	}, opts...)
	_, unstored := err.(*failure) //nolint:errorlint // a function's error comes back unchanged
	switch {
	case unstored, err == nil && !res.Replayed:
		return ran.message, ran.err
	case err != nil:
		return nil, s.fail(ctx, err)
	}
	m, st, err := res.Value.rebuild()
	if err != nil {
		s.logger.ErrorContext(ctx, "idemgrpc: no answer", "error", err)
		return nil, newStatus(ResponseUnreadable, "", 0).Err()
	}
	_ = grpc.SetHeader(ctx, metadata.Pairs(ReplayedEntry, "true")) // only outside of a server does it fail
	if st != nil {
		return nil, st.Err()
	}
	return m, nil
}

// fail answers a call that has no answer. The error's text stays here.
func (s *server) fail(ctx context.Context, err error) error {
	st := newStatus(Misconfigured, "", 0)
	if e, ok := errors.AsType[*idem.Error](err); ok {
		st = statusFor(e)
	}
	if st.Code() == codes.Internal || st.Code() == codes.Unavailable {
		s.logger.ErrorContext(ctx, "idemgrpc: no answer", "error", err)
	}
	return st.Err()
}

func (s *server) misconfigured(ctx context.Context, err error) error {
	s.logger.ErrorContext(ctx, "idemgrpc: no answer", "error", err)
	return newStatus(Misconfigured, "", 0).Err()
}

// configError says what to write instead.
func configError(format string, args ...any) error {
	return &idem.Error{Reason: idem.ErrConfig, Detail: "idemgrpc: " + fmt.Sprintf(format, args...)}
}
