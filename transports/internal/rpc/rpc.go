// Package rpc is what the transports for gRPC and for Connect have in common: what
// is answered for each reason, and which keys are taken. The codes are gRPC's.
package rpc

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/idem-go/idem"
)

// The entries of metadata, and the domain of the answers.
const (
	KeyEntry      = "idempotency-key"
	ReplayedEntry = "idempotency-replayed"
	Domain        = "idem-go"
)

// Reason is why a call has no answer of the handler's.
type Reason string

// The reasons.
const (
	KeyMissing         Reason = "KEY_MISSING"
	KeyInvalid         Reason = "KEY_INVALID"
	Forbidden          Reason = "FORBIDDEN"
	InProgress         Reason = "IN_PROGRESS"
	OutcomePending     Reason = "OUTCOME_PENDING"
	OutcomeUnknown     Reason = "OUTCOME_UNKNOWN"
	KeyReused          Reason = "KEY_REUSED"
	KeyExpired         Reason = "KEY_EXPIRED"
	ResponseOmitted    Reason = "RESPONSE_OMITTED"
	StoreUnavailable   Reason = "STORE_UNAVAILABLE"
	ResponseUnreadable Reason = "RESPONSE_UNREADABLE"
	Misconfigured      Reason = "MISCONFIGURED"
)

// The codes that are answered, or not final.
const (
	canceled           = 1
	unknown            = 2
	invalidArgument    = 3
	deadlineExceeded   = 4
	alreadyExists      = 6
	permissionDenied   = 7
	resourceExhausted  = 8
	failedPrecondition = 9
	aborted            = 10
	unimplemented      = 12
	internal           = 13
	unavailable        = 14
	dataLoss           = 15
)

// Problem is what is answered for a reason.
type Problem struct {
	Reason Reason
	Code   uint32
	Text   string
	Err    error // the sentinel that it stands for; nil: none
	Final  bool  // of an idem.ErrOutcomeUnknown
}

// problems are in the order in which an error's is looked for.
var problems = []Problem{
	{KeyInvalid, invalidArgument, "the idempotency key is invalid", idem.ErrInvalidKey, false},
	{KeyMissing, invalidArgument, "the call needs an idempotency key", idem.ErrInvalidKey, false},
	{Forbidden, permissionDenied, "the call is not allowed", nil, false},
	{InProgress, aborted, "a call with this idempotency key is in progress", idem.ErrInProgress, false},
	{OutcomePending, aborted, "the outcome of the call with this idempotency key is not known yet", idem.ErrOutcomeUnknown, false},
	{OutcomeUnknown, failedPrecondition, "the outcome of the call with this idempotency key is unknown", idem.ErrOutcomeUnknown, true},
	{KeyReused, failedPrecondition, "the idempotency key was used for another request", idem.ErrMismatch, false},
	{KeyExpired, alreadyExists, "the answer to this idempotency key is no longer kept", idem.ErrKeyExpired, false},
	{ResponseOmitted, alreadyExists, "the answer to this idempotency key was not kept", idem.ErrResultOmitted, false},
	{StoreUnavailable, unavailable, "the idempotency store is unavailable", idem.ErrStore, false},
	{ResponseUnreadable, internal, "the answer to this idempotency key cannot be read", idem.ErrUnreadable, false},
	{Misconfigured, internal, "the server is misconfigured", idem.ErrConfig, false},
}

// Of returns the problem of a reason.
func Of(r Reason) (p Problem, ok bool) {
	i := slices.IndexFunc(problems, func(p Problem) bool { return p.Reason == r })
	if i < 0 {
		return p, false
	}
	return problems[i], true
}

// For returns the problem of an error, and after which time to try again; 0: that is of no use.
func For(e *idem.Error) (p Problem, retry time.Duration) {
	for _, p := range problems {
		if p.Err == nil || !errors.Is(e.Reason, p.Err) || errors.Is(p.Err, idem.ErrOutcomeUnknown) && p.Final != e.Final {
			continue
		}
		if p.Code == unavailable {
			return p, time.Second
		}
		return p, e.RetryAfter
	}
	p, _ = Of(Misconfigured)
	return p, 0
}

// IsFinal reports whether a code is an answer that trying again would not change.
func IsFinal(code uint32) bool {
	switch code {
	case canceled, unknown, deadlineExceeded, resourceExhausted, aborted, unimplemented, internal, unavailable, dataLoss:
		return false
	}
	return true
}

// maxKey is the largest length of a key, in bytes.
const maxKey = 255

// Key returns the key that a call has in its metadata; "" if it has none. The
// problem says what is wrong with it.
func Key(values []string) (key, problem string) {
	switch {
	case len(values) == 0:
		return "", ""
	case len(values) > 1:
		return "", "there are two keys: send one"
	case len(values[0]) > maxKey || strings.TrimSpace(values[0]) == "" || strings.ContainsFunc(values[0], unprintable):
		return "", "the key must be 1 to 255 printable ASCII characters"
	}
	return values[0], ""
}

func unprintable(r rune) bool { return r < ' ' || r > '~' }
