package idem

import (
	"context"
	"errors"
	"io"
	"net"
	"os"

	"github.com/idem-go/idem/driver"
)

// ClassifierFunc says what a failure of the function is. It answers
// KindUnknown for what it does not know; then the next is asked: the call's,
// the operation's, the driver's, and last the default, which says
//
//   - KindInfrastructure: context errors, timeouts, network and connection
//     errors, anything with a method Retryable() bool that returns true
//     (an [*Error] in progress, for example), [ErrLeaseLost];
//   - KindDomain: everything else.
//
// A panic is always KindBug.
type ClassifierFunc func(error) FailureKind

// classify asks the chain.
func (c *call) classify(err error) FailureKind {
	for _, f := range [...]ClassifierFunc{c.set.classifier, c.op.defaults.classifier} {
		if f != nil {
			if kind := f(err); kind != KindUnknown {
				return kind
			}
		}
	}
	if d, ok := driver.As[driver.Classifier](c.op.driver); ok {
		if kind := d.Classify(driver.ClassifyParams{Err: err}).Kind; kind != KindUnknown {
			return kind
		}
	}
	return classifyDefault(err)
}

func classifyDefault(err error) FailureKind {
	var (
		retryable interface{ Retryable() bool }
		timeout   interface{ Timeout() bool }
		op        *net.OpError
		dns       *net.DNSError
	)
	switch {
	case errors.As(err, &retryable) && retryable.Retryable(),
		errors.As(err, &timeout) && timeout.Timeout(),
		errors.As(err, &op),
		errors.As(err, &dns):
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
