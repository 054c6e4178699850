// Package idemrabbitmq drives RabbitMQ by the decisions of idemqueue.
//
//	handle, err := idemqueue.Handler(orders, idemrabbitmq.Header("idempotency-key"), charge)
//	for d := range deliveries {
//		go func() { err := idemrabbitmq.Settle(ctx, d, handle(ctx, d)) }()
//	}
//
// The channel consumes without automatic acknowledgement and with a prefetch
// count (Channel.Qos), which bounds how many handlers run. A dead letter is rejected: give the queue an exchange
// for them (x-dead-letter-exchange), or it is gone.
package idemrabbitmq

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/transports/idemqueue"
)

// Header takes the key from a header of the message, a string.
func Header(name string) idem.KeyFunc[amqp.Delivery] {
	return func(d amqp.Delivery) (string, error) {
		key, _ := d.Headers[name].(string)
		return key, nil
	}
}

// MessageID takes the key from the property message-id, for producers that give a
// message which they send again the same one.
func MessageID(d amqp.Delivery) (string, error) { return d.MessageId, nil }

// Settle tells the broker what was decided. RabbitMQ cannot delay a
// redelivery, so Settle holds the message for as long before it gives it back, or until
// ctx ends.
func Settle(ctx context.Context, m amqp.Delivery, d idemqueue.Decision) error {
	switch d.Action {
	case idemqueue.Ack:
		return m.Ack(false)
	case idemqueue.DeadLetter:
		return m.Reject(false)
	case idemqueue.Retry:
	}
	if d.Delay > 0 {
		timer := time.NewTimer(d.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return m.Nack(false, true)
}
