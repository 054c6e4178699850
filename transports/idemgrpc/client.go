package idemgrpc

import (
	"context"
	"crypto/rand"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/transports/internal/rpc"
)

// UnaryClientInterceptor returns an interceptor that sends an idempotency key
// with each call: the one that the caller has put into the outgoing metadata (see
// [KeyEntry]), or else a new random one. The key belongs to the logical call: what gRPC
// itself sends again, by a retry policy, has the same. A caller that itself tries again, or may die and
// be started again, chooses the key and keeps it.
//
// Where a server of this package has no answer, the error is its status, and
// [errors.As] finds an [*idem.Error] in it: inside the function of another
// operation it counts as what it is, so that one which met a key in progress is
// free to be run again.
func UnaryClientInterceptor() grpc.UnaryClientInterceptor {
	return func(
		ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		md, _ := metadata.FromOutgoingContext(ctx)
		if len(md.Get(KeyEntry)) == 0 {
			ctx = metadata.AppendToOutgoingContext(ctx, KeyEntry, rand.Text())
		}
		return understood(invoke(ctx, method, req, reply, cc, opts...))
	}
}

// remoteError is the status of a server that had no answer.
type remoteError struct {
	error
	reason *idem.Error
}

// GRPCStatus lets [status.FromError] find the status.
func (e *remoteError) GRPCStatus() *status.Status { return status.Convert(e.error) }

// Unwrap returns the reason.
func (e *remoteError) Unwrap() error { return e.reason }

// understood returns err with the reason in it that the server gave.
func understood(err error) error {
	s, ok := status.FromError(err)
	if err == nil || !ok {
		return err
	}
	var reason idem.Error
	for _, d := range s.Details() {
		switch d := d.(type) {
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
	return &remoteError{error: err, reason: &reason}
}
