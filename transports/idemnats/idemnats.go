// Package idemnats drives NATS JetStream by the decisions of idemqueue.
//
//	handle, err := idemqueue.Handler(orders, idemnats.Header("Idempotency-Key"), charge)
//	consumer.Consume(func(m jetstream.Msg) { err := idemnats.Settle(m, handle(ctx, m)) })
//
// The consumer acknowledges explicitly. A handler may take longer than the
// consumer's AckWait: the message is delivered again meanwhile, found in progress
// and put off, and acknowledged once it is done.
package idemnats

import (
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/transports/idemqueue"
)

// Header takes the key from a header of the message.
func Header(name string) idem.KeyFunc[jetstream.Msg] {
	return func(m jetstream.Msg) (string, error) { return m.Headers().Get(name), nil }
}

// MessageID takes the key from the header Nats-Msg-Id, by which JetStream
// itself drops what a producer publishes twice, within its window (two minutes by default).
func MessageID(m jetstream.Msg) (string, error) { return m.Headers().Get(nats.MsgIdHdr), nil }

// Settle tells the server what was decided: an acknowledgement, a redelivery
// after the delay, or none any more, of which the server publishes an advisory:
// JetStream has no queue for dead letters.
func Settle(m jetstream.Msg, d idemqueue.Decision) error {
	switch d.Action {
	case idemqueue.Ack:
		return m.Ack()
	case idemqueue.DeadLetter:
		return m.TermWithReason("idem: dead letter") // no text of an error: it may be confidential
	case idemqueue.Retry:
	}
	if d.Delay > 0 {
		return m.NakWithDelay(d.Delay)
	}
	return m.Nak()
}
