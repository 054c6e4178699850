package idem

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"os"

	"github.com/idem-go/idem/driver"
)

// ClassifierFunc says what a failure of the function is. It answers
// KindUnknown for what it does not know; then the next is asked: the call's,
// the operation's, the driver's, and last the default, which says
//
//   - KindInfrastructure: context errors, timeouts, network and connection
//     errors, an HTTP request without an answer, a full or failing disk, anything
//     with a method Retryable() bool that returns true (an [*Error] in
//     progress, for example), [ErrLeaseLost];
//   - KindDomain: everything else.
//
// A panic is always KindBug, one of a classifier or of an error's methods too. What the operation names ([Replayable]) is
// KindDomain unless the call's or the operation's classifier says otherwise.
type ClassifierFunc func(error) FailureKind

// classify asks the chain. Where that panics, in what somebody wrote into a
// classifier or an error, the failure is a bug.
func (c *call) classify(err error) (kind FailureKind) {
	kind = KindBug
	_ = guarded(func() error { kind = c.askClassifiers(err); return nil })
	return kind
}

func (c *call) askClassifiers(err error) FailureKind {
	for _, f := range [...]ClassifierFunc{c.set.classifier, c.op.defaults.classifier} {
		if f != nil {
			switch kind := f(err); kind {
			case kindReplayableOnly:
				return c.op.replayableOnly(err)
			case KindDomain, KindInfrastructure, KindBug:
				return kind
			case KindUnknown:
			}
		}
	}
	if len(c.op.named(err)) > 0 {
		return KindDomain
	}
	if d, ok := driver.As[driver.Classifier](c.op.driver); ok {
		if kind := d.Classify(driver.ClassifyParams{Err: err}).Kind; kind != KindUnknown {
			return kind
		}
	}
	return classifyDefault(err)
}

// kindReplayableOnly is what [ReplayableOnly] answers: the engine knows which
// errors the operation names.
const kindReplayableOnly FailureKind = 255

// ReplayableOnly is a stricter classifier, for [WithClassifier]: what the
// operation does not name by [Replayable] or [ReplayableSentinel] is
// KindInfrastructure.
func ReplayableOnly(error) FailureKind { return kindReplayableOnly }

func (op *Operation) replayableOnly(err error) FailureKind {
	if len(op.named(err)) > 0 {
		return KindDomain
	}
	return KindInfrastructure
}

func classifyDefault(err error) FailureKind {
	var (
		retryable interface{ Retryable() bool }
		timeout   interface{ Timeout() bool }
		op        *net.OpError
		dns       *net.DNSError
		request   *url.Error
	)
	// An error's method As may say yes and set nothing.
	switch {
	case errors.As(err, &retryable) && retryable != nil && retryable.Retryable(),
		errors.As(err, &timeout) && timeout != nil && timeout.Timeout(),
		errors.As(err, &op) && op != nil,
		errors.As(err, &dns) && dns != nil,
		errors.As(err, &request) && request != nil && request.Op != "parse", // an HTTP client got no answer
		passingSystemError(err):
		return KindInfrastructure
	}
	for _, passing := range [...]error{
		ErrLeaseLost, context.Canceled, context.DeadlineExceeded, os.ErrDeadlineExceeded,
		net.ErrClosed, io.ErrUnexpectedEOF, io.ErrClosedPipe,
	} {
		if errors.Is(err, passing) {
			return KindInfrastructure
		}
	}
	return KindDomain
}
