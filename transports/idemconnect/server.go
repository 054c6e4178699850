package idemconnect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/transports/internal/rpc"
)

// Interceptor returns an interceptor for handlers that runs each of the
// procedures as its operation; their names are those of the generated constants, such as
// /payments.v1.Payments/Charge. Others pass through. What cannot be protected is
// refused here: a streaming procedure, one that nobody knows. Guarantees over Connect:
//
//   - AtLeastOnce: after a code that is not final (see [WithFinal]) the key
//     is free, so that a retry runs again;
//   - AtMostOnce: whatever the handler answers is stored; a handler that
//     never answered is OUTCOME_UNKNOWN;
//   - ExactlyOnce: the handler finds its transaction in its context; a
//     failing code (see [WithRollback]) rolls it back.
func Interceptor(procedures map[string]*idem.Operation, opts ...Option) (connect.Interceptor, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	if len(procedures) == 0 {
		return nil, configError("no procedure is named: give each that is to be protected its operation")
	}
	s := &server{config: c, procedures: make(map[string]*idem.Operation, len(procedures))}
	for name, op := range procedures {
		if err := checkProcedure(name, op); err != nil {
			return nil, err
		}
		s.procedures[name] = op
	}
	if c.principal == nil && !c.shared {
		c.logger.Warn("idemconnect: no principal is configured: a caller who guesses another's key gets the other's answer; " +
			"use WithPrincipal, or WithoutPrincipal if that is meant")
	}
	return connect.UnaryInterceptorFunc(s.wrap), nil
}

// checkProcedure refuses what cannot be protected.
func checkProcedure(name string, op *idem.Operation) error {
	full := strings.ReplaceAll(strings.TrimPrefix(name, "/"), "/", ".")
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(full))
	m, found := d.(protoreflect.MethodDescriptor)
	switch {
	case op == nil:
		return configError("%s: the operation is nil: build one with idem.NewOperation", name)
	case err != nil || !found || name != fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name()):
		return configError("%s: there is no such procedure: write it as its generated constant is, /package.Service/Method, and import "+
			"the generated package of its messages", name)
	case m.IsStreamingClient() || m.IsStreamingServer():
		return configError("%s streams: there is no one request to compare and no one response to store: protect the unary procedures "+
			"around it, or run its effects by idem.Execute", name)
	}
	_, err = idem.Wrap(op, // can it store responses?
		func(struct{}) (string, error) { return "", nil },
		func(context.Context, struct{}) (Response, error) { return Response{}, nil })
	if err != nil {
		return fmt.Errorf("idemconnect: %s: %w", name, err)
	}
	return nil
}

type server struct {
	config

	procedures map[string]*idem.Operation
}

func (s *server) wrap(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		op, protected := s.procedures[req.Spec().Procedure]
		if !protected || req.Spec().IsClient {
			return next(ctx, req)
		}
		key, problem := rpc.Key(req.Header().Values(KeyHeader))
		switch {
		case problem != "":
			return nil, newError(KeyInvalid, problem, 0)
		case key == "" && s.optional:
			return next(ctx, req)
		case key == "":
			return nil, newError(KeyMissing, "", 0)
		}
		opts, err := s.options(ctx, op, req)
		if err != nil {
			return nil, err
		}
		return s.run(ctx, op, key, func(ctx context.Context) (connect.AnyResponse, error) { return next(ctx, req) }, opts)
	}
}

// options returns the options of the call, or the error that it ends with.
func (s *server) options(ctx context.Context, op *idem.Operation, req connect.AnyRequest) ([]idem.ExecuteOption, error) {
	opts := []idem.ExecuteOption{idem.On(op), idem.WithScope(req.Spec().Procedure)}
	if op.Guarantee() == idem.AtLeastOnce {
		opts = append(opts, idem.WithClassifier(classify))
	}
	if s.principal != nil {
		principal, err := s.principal(ctx, req)
		if e, is := errors.AsType[*connect.Error](err); is {
			return nil, e
		}
		if err != nil || principal == "" {
			return nil, newError(Forbidden, "", 0)
		}
		opts = append(opts, idem.WithScope(principal))
	}
	m, isMessage := req.Any().(proto.Message)
	if !isMessage {
		return nil, s.fail(ctx, fmt.Errorf("the request of %s is a %T, which is no message", req.Spec().Procedure, req.Any()))
	}
	fingerprint, err := s.fingerprint(ctx, m)
	if err != nil {
		return nil, s.fail(ctx, fmt.Errorf("the request of %s has no fingerprint: %w", req.Spec().Procedure, err))
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
	if _, unstored := err.(*failure); unstored { //nolint:errorlint // the very value
		return idem.KindInfrastructure
	}
	return idem.KindUnknown
}

// run runs the handler under the key, or answers without it.
func (s *server) run(
	ctx context.Context, op *idem.Operation, key string,
	handler func(context.Context) (connect.AnyResponse, error), opts []idem.ExecuteOption,
) (connect.AnyResponse, error) {
	var ran answer
	res, err := idem.ExecuteResult(ctx, key, func(ctx context.Context) (Response, error) {
		ran = answered(handler(ctx))
		if op.Guarantee() == idem.AtLeastOnce && ran.code != ok && !s.final(ran.code) ||
			op.Guarantee() == idem.ExactlyOnce && s.failed(ran.code) {
			return Response{}, &failure{ran.err}
		}
		return ran.stored()
	}, opts...)
	_, unstored := err.(*failure) //nolint:errorlint // a function's error comes back unchanged
	switch {
	case unstored, err == nil && !res.Replayed:
		return ran.response, ran.err
	case err != nil:
		return nil, s.fail(ctx, err)
	}
	again, e, err := res.Value.rebuild()
	switch {
	case err != nil:
		s.logger.ErrorContext(ctx, "idemconnect: no answer", "error", err)
		return nil, newError(ResponseUnreadable, "", 0)
	case e != nil:
		e.Meta().Set(ReplayedHeader, "true")
		return nil, e
	}
	again.Header().Set(ReplayedHeader, "true")
	return again, nil
}

// fail answers a call that has no answer. The error's text stays here.
func (s *server) fail(ctx context.Context, err error) error {
	e := newError(Misconfigured, "", 0)
	if reason, is := errors.AsType[*idem.Error](err); is {
		e = errorFor(reason)
	}
	if e.Code() == connect.CodeInternal || e.Code() == connect.CodeUnavailable {
		s.logger.ErrorContext(ctx, "idemconnect: no answer", "error", err)
	}
	return e
}
