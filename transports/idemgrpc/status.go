package idemgrpc

import (
	"errors"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/transports/internal/rpc"
)

// Domain is the domain of the google.rpc.ErrorInfo of every status that this
// package answers with.
const Domain = rpc.Domain

// Reason is why a call has no answer of the handler's: the reason of the
// status's google.rpc.ErrorInfo. The reasons are stable.
type Reason = rpc.Reason

// The reasons.
const (
	KeyMissing         = rpc.KeyMissing         // INVALID_ARGUMENT: the method needs a key
	KeyInvalid         = rpc.KeyInvalid         // INVALID_ARGUMENT: the key is malformed, or there are two
	Forbidden          = rpc.Forbidden          // PERMISSION_DENIED: the caller is unknown
	InProgress         = rpc.InProgress         // ABORTED, RetryInfo: the first call still runs
	OutcomePending     = rpc.OutcomePending     // ABORTED, RetryInfo: it may have run, an answer may still come
	OutcomeUnknown     = rpc.OutcomeUnknown     // FAILED_PRECONDITION: it may have run, nobody knows how it ended
	KeyReused          = rpc.KeyReused          // FAILED_PRECONDITION: the key was used for another request
	KeyExpired         = rpc.KeyExpired         // ALREADY_EXISTS: it has run, its answer is no longer kept
	ResponseOmitted    = rpc.ResponseOmitted    // ALREADY_EXISTS: it has run, its answer could not be kept
	StoreUnavailable   = rpc.StoreUnavailable   // UNAVAILABLE, RetryInfo: the call did not run
	ResponseUnreadable = rpc.ResponseUnreadable // INTERNAL: an answer is stored that this server cannot read
	Misconfigured      = rpc.Misconfigured      // INTERNAL: the server is set up wrongly; its log says how
)

// newStatus returns the status of a reason. The detail, if any, follows its text.
func newStatus(r Reason, detail string, retry time.Duration) *status.Status {
	p, _ := rpc.Of(r)
	text := p.Text
	if detail != "" {
		text += ": " + detail
	}
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: string(r), Domain: Domain}}
	if retry > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(retry)})
	}
	s, err := status.New(codes.Code(p.Code), text).WithDetails(details...)
	if err != nil { // they are messages, and the code is not OK
		panic(err)
	}
	return s
}

// statusFor returns the status that a call ends with which has no answer.
func statusFor(e *idem.Error) *status.Status {
	p, retry := rpc.For(e)
	return newStatus(p.Reason, "", retry)
}

// statusOf returns the status that an error of a handler is answered with: its
// own, that of a nested call of this library, or gRPC's for an error without one.
func statusOf(err error) *status.Status {
	if s, ok := status.FromError(err); ok {
		return s
	}
	if e, ok := errors.AsType[*idem.Error](err); ok {
		return statusFor(e)
	}
	return status.FromContextError(err)
}
