package idemconnect

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/transports/internal/rpc"
)

// Domain is the domain of the google.rpc.ErrorInfo of every error that this
// package answers with.
const Domain = rpc.Domain

// Reason is why a call has no answer of the handler's: the reason of the
// error's google.rpc.ErrorInfo. The reasons are stable, and those of idemgrpc.
type Reason = rpc.Reason

// The reasons.
const (
	KeyMissing         = rpc.KeyMissing         // invalid_argument: the procedure needs a key
	KeyInvalid         = rpc.KeyInvalid         // invalid_argument: the key is malformed, or there are two
	Forbidden          = rpc.Forbidden          // permission_denied: the caller is unknown
	InProgress         = rpc.InProgress         // aborted, RetryInfo: the first call still runs
	OutcomePending     = rpc.OutcomePending     // aborted, RetryInfo: it may have run, an answer may still come
	OutcomeUnknown     = rpc.OutcomeUnknown     // failed_precondition: it may have run, nobody knows how it ended
	KeyReused          = rpc.KeyReused          // failed_precondition: the key was used for another request
	KeyExpired         = rpc.KeyExpired         // already_exists: it has run, its answer is no longer kept
	ResponseOmitted    = rpc.ResponseOmitted    // already_exists: it has run, its answer could not be kept
	StoreUnavailable   = rpc.StoreUnavailable   // unavailable, RetryInfo: the call did not run
	ResponseUnreadable = rpc.ResponseUnreadable // internal: an answer is stored that this server cannot read
	Misconfigured      = rpc.Misconfigured      // internal: the server is set up wrongly; its log says how
)

// newError returns the error of a reason. The detail, if any, follows its text.
func newError(r Reason, detail string, retry time.Duration) *connect.Error {
	p, _ := rpc.Of(r)
	text := p.Text
	if detail != "" {
		text += ": " + detail
	}
	e := connect.NewError(connect.Code(p.Code), errors.New(text))
	details := []proto.Message{&errdetails.ErrorInfo{Reason: string(r), Domain: Domain}}
	if retry > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(retry)})
	}
	for _, d := range details {
		detail, err := connect.NewErrorDetail(d)
		if err != nil { // they can be marshalled
			panic(err)
		}
		e.AddDetail(detail)
	}
	return e
}

// errorFor returns the error that a call ends with which has no answer.
func errorFor(e *idem.Error) *connect.Error {
	p, retry := rpc.For(e)
	return newError(p.Reason, "", retry)
}

// errorOf returns what an error of a handler is answered with: itself, that of a nested call of
// this library, or Connect's for an error without a code.
func errorOf(err error) *connect.Error {
	if e, ok := errors.AsType[*connect.Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*idem.Error](err); ok {
		return errorFor(e)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return connect.NewError(connect.CodeCanceled, err)
	case errors.Is(err, context.DeadlineExceeded):
		return connect.NewError(connect.CodeDeadlineExceeded, err)
	}
	return connect.NewError(connect.CodeUnknown, err)
}
