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
)

// Domain is the domain of the google.rpc.ErrorInfo of every status that this
// package answers with.
const Domain = "idem-go"

// Reason is why a call has no answer of the handler's: the reason of the
// status's google.rpc.ErrorInfo. The reasons are stable.
type Reason string

// The reasons.
const (
	KeyMissing         Reason = "KEY_MISSING"         // INVALID_ARGUMENT: the method needs a key
	KeyInvalid         Reason = "KEY_INVALID"         // INVALID_ARGUMENT: the key is malformed, or there are two
	Forbidden          Reason = "FORBIDDEN"           // PERMISSION_DENIED: the caller is unknown
	InProgress         Reason = "IN_PROGRESS"         // ABORTED, RetryInfo: the first call still runs
	OutcomePending     Reason = "OUTCOME_PENDING"     // ABORTED, RetryInfo: it may have run, an answer may still come
	OutcomeUnknown     Reason = "OUTCOME_UNKNOWN"     // FAILED_PRECONDITION: it may have run, nobody knows how it ended
	KeyReused          Reason = "KEY_REUSED"          // FAILED_PRECONDITION: the key was used for another request
	KeyExpired         Reason = "KEY_EXPIRED"         // ALREADY_EXISTS: it has run, its answer is no longer kept
	ResponseOmitted    Reason = "RESPONSE_OMITTED"    // ALREADY_EXISTS: it has run, its answer could not be kept
	StoreUnavailable   Reason = "STORE_UNAVAILABLE"   // UNAVAILABLE, RetryInfo: the call did not run
	ResponseUnreadable Reason = "RESPONSE_UNREADABLE" // INTERNAL: an answer is stored that this server cannot read
	Misconfigured      Reason = "MISCONFIGURED"       // INTERNAL: the server is set up wrongly; its log says how
)

// problem is what is answered for a reason.
type problem struct {
	reason Reason
	code   codes.Code
	text   string
	err    error // the sentinel that it stands for; nil: none
	final  bool  // of an idem.ErrOutcomeUnknown
}

var problems = []problem{
	{KeyInvalid, codes.InvalidArgument, "the idempotency key is invalid", idem.ErrInvalidKey, false},
	{KeyMissing, codes.InvalidArgument, "the call needs an idempotency key", idem.ErrInvalidKey, false},
	{Forbidden, codes.PermissionDenied, "the call is not allowed", nil, false},
	{InProgress, codes.Aborted, "a call with this idempotency key is in progress", idem.ErrInProgress, false},
	{OutcomePending, codes.Aborted, "the outcome of the call with this idempotency key is not known yet", idem.ErrOutcomeUnknown, false},
	{OutcomeUnknown, codes.FailedPrecondition, "the outcome of the call with this idempotency key is unknown", idem.ErrOutcomeUnknown, true},
	{KeyReused, codes.FailedPrecondition, "the idempotency key was used for another request", idem.ErrMismatch, false},
	{KeyExpired, codes.AlreadyExists, "the answer to this idempotency key is no longer kept", idem.ErrKeyExpired, false},
	{ResponseOmitted, codes.AlreadyExists, "the answer to this idempotency key was not kept", idem.ErrResultOmitted, false},
	{StoreUnavailable, codes.Unavailable, "the idempotency store is unavailable", idem.ErrStore, false},
	{ResponseUnreadable, codes.Internal, "the answer to this idempotency key cannot be read", idem.ErrUnreadable, false},
	{Misconfigured, codes.Internal, "the server is misconfigured", idem.ErrConfig, false},
}

func problemFor(r Reason) (problem, bool) {
	for _, p := range problems {
		if p.reason == r {
			return p, true
		}
	}
	return problem{}, false
}

// newStatus returns the status of a reason. The detail, if any, follows its text.
func newStatus(r Reason, detail string, retry time.Duration) *status.Status {
	p, _ := problemFor(r)
	text := p.text
	if detail != "" {
		text += ": " + detail
	}
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: string(r), Domain: Domain}}
	if retry > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(retry)})
	}
	s, err := status.New(p.code, text).WithDetails(details...)
	if err != nil { // they are messages, and the code is not OK
		panic(err)
	}
	return s
}

// statusFor returns the status that a call ends with which has no answer.
func statusFor(e *idem.Error) *status.Status {
	for _, p := range problems {
		if p.err == nil || !errors.Is(e.Reason, p.err) || errors.Is(p.err, idem.ErrOutcomeUnknown) && p.final != e.Final {
			continue
		}
		retry := e.RetryAfter
		if p.code == codes.Unavailable {
			retry = time.Second
		}
		return newStatus(p.reason, "", retry)
	}
	return newStatus(Misconfigured, "", 0)
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
