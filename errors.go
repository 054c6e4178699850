package idem

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Reasons why there is no fresh answer. A call returns them inside an [*Error];
// branch with [errors.Is].
var (
	// ErrInProgress: another call runs this key. Try again after
	// Error.RetryAfter.
	ErrInProgress error = reason("in progress elsewhere")
	// ErrOutcomeUnknown: the key may have run and nobody knows how it ended.
	// While Error.Final is false, an answer may still come.
	ErrOutcomeUnknown error = reason("outcome unknown")
	// ErrMismatch: the key was used for a request with another fingerprint.
	ErrMismatch error = reason("key used for another request")
	// ErrKeyExpired: the key has run and its outcome is no longer kept.
	ErrKeyExpired error = reason("outcome expired")
	// ErrResultOmitted: the key has run and succeeded; its result was too
	// large to keep or could not be encoded.
	ErrResultOmitted error = reason("result not kept")
	// ErrUnreadable: an outcome is stored, but this program cannot read it.
	// The function was not run again because of it.
	ErrUnreadable error = reason("stored outcome unreadable")
	// ErrLeaseLost: the lease ended while the function ran. It is the cause of
	// the cancellation of the function's context.
	ErrLeaseLost error = reason("lease lost")
	// ErrStore: the store could not be asked, so the function did not run.
	ErrStore error = reason("store failed")
	// ErrInvalidKey: the key is empty or blank.
	ErrInvalidKey error = reason("invalid key")
	// ErrConfig: the program asks for something impossible. The error says
	// what to write instead.
	ErrConfig error = reason("wrong configuration")
)

type reason string

func (r reason) Error() string { return "idem: " + string(r) }

// maxKeyInText is how many bytes of a key an error's text shows.
const maxKeyInText = 64

// Error says why a call has no fresh answer: the function did not run, or its
// outcome is not known. Any other error of a call is the function's own, or a
// [*ReplayedError].
type Error struct {
	Reason     error         // one of the package's sentinels
	Operation  Alias         // empty if it was not found
	Key        string        // as the caller gave it
	RetryAfter time.Duration // a hint when to try again; 0: none
	Final      bool          // ErrOutcomeUnknown: no answer will come by itself
	Since      time.Time     // ErrInProgress, ErrOutcomeUnknown: when the run began, by the store's clock; zero if not known
	Attempt    int           // ErrInProgress, ErrOutcomeUnknown: which run of the key it is, from 1; 0: not known
	Detail     string        // what to know or to write instead
	Err        error         // the cause; may be nil
}

// Error returns one line: the operation, the key (quoted, shortened to 64
// bytes), the reason, when to retry, details and the cause.
func (e *Error) Error() string {
	text := "idem: "
	if e.Operation != "" {
		text += string(e.Operation) + " "
	}
	if e.Key != "" {
		text += quoteShort(e.Key) + ": "
	}
	if r, ok := errors.AsType[reason](e.Reason); ok {
		text += string(r)
	} else {
		text += fmt.Sprint(e.Reason)
	}
	if e.RetryAfter > 0 {
		text += ", retry in " + roundForHumans(e.RetryAfter).String()
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if e.Err == nil {
		return text
	}
	if cause := e.Err.Error(); !strings.HasSuffix(e.Detail, cause) {
		text += ": " + cause
	}
	return text
}

// Unwrap returns the reason and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Err}
}

// Retryable reports whether the same call may have an answer later without
// anybody's help.
func (e *Error) Retryable() bool {
	return isAny(e.Reason, ErrInProgress, ErrStore, ErrLeaseLost) || errors.Is(e.Reason, ErrOutcomeUnknown) && !e.Final
}

// ReplayedError is a failure that an earlier run of the key ended with.
type ReplayedError struct {
	Name    string    // under which the operation knows the error, the outermost if there are several; empty: none
	Message string    // the text of the first failure
	At      time.Time // when it was recorded, by the store's clock
	Err     error     // the error rebuilt from its name; nil: none
}

// Error returns the text of the first failure. If that was not stored, it is
// the text of the rebuilt error, or says no more than that there was a failure.
func (e *ReplayedError) Error() string {
	switch {
	case e.Message != "":
		return e.Message
	case e.Err != nil:
		return e.Err.Error()
	case e.Name != "":
		return "idem: failed before: " + e.Name
	}
	return "idem: failed before"
}

// Unwrap returns the rebuilt error.
func (e *ReplayedError) Unwrap() error { return e.Err }

// configError says what to write instead. It wraps what the format does.
func configError(op Alias, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Reason: ErrConfig, Operation: op, Detail: err.Error(), Err: errors.Unwrap(err)}
}

func quoteShort(s string) string {
	if len(s) <= maxKeyInText {
		return strconv.Quote(s)
	}
	return strconv.Quote(s[:maxKeyInText]) + "…"
}

// roundForHumans rounds up to what a person reads at a glance.
func roundForHumans(d time.Duration) time.Duration {
	unit := time.Millisecond
	if d >= time.Second {
		unit = time.Second
	}
	if d > RetainForever-unit {
		return d
	}
	return (d + unit - 1).Truncate(unit)
}
