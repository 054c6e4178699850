package idemconnect

import (
	"context"
	"crypto/rand"
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/transports/internal/rpc"
)

// ClientInterceptor returns an interceptor for clients that sends an
// idempotency key with each unary call: the one in the request's header (see [KeyHeader]), or else
// a new random one. A caller that tries again, or may die and be started
// again, chooses the key and keeps it.
//
// Where a server of this package or of idemgrpc has no answer, [errors.As]
// finds an [*idem.Error] beside the [*connect.Error]: inside the function of another
// operation it counts as what it is.
func ClientInterceptor() connect.Interceptor {
	return connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			if req.Spec().IsClient && len(req.Header().Values(KeyHeader)) == 0 {
				req.Header().Set(KeyHeader, rand.Text())
			}
			res, err := next(ctx, req)
			return res, understood(err)
		}
	})
}

// remoteError is the error of a server that had no answer.
type remoteError struct {
	wire   *connect.Error
	reason *idem.Error
}

func (e *remoteError) Error() string { return e.wire.Error() }

// Unwrap returns the error and the reason.
func (e *remoteError) Unwrap() []error { return []error{e.wire, e.reason} }

// understood returns err with the reason in it that the server gave.
func understood(err error) error {
	e, is := errors.AsType[*connect.Error](err)
	if !is {
		return err
	}
	var reason idem.Error
	for _, d := range e.Details() {
		value, err := d.Value()
		if err != nil {
			continue // a message that this program does not know
		}
		switch d := value.(type) {
		case *errdetails.ErrorInfo:
			if p, known := rpc.Of(Reason(d.GetReason())); known && d.GetDomain() == Domain {
				reason.Reason, reason.Final = p.Err, p.Final
			}
		case *errdetails.RetryInfo:
			reason.RetryAfter = d.GetRetryDelay().AsDuration()
		}
	}
	if reason.Reason == nil {
		return err
	}
	return &remoteError{e, &reason}
}
