package brokers_test

import (
	"context"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/idem-go/idem/internal/testenv"
	"github.com/idem-go/idem/transports/idemrabbitmq"
)

var rabbitBroker = broker{
	pause: 500 * time.Millisecond,
	start: func(t *testing.T, topic string) string {
		t.Helper()
		address := testenv.Backend(t, testenv.RabbitMQ)
		must(t, onChannel(address, func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclare(topic, true, false, false, false, nil)
			return err
		}))
		t.Cleanup(func() {
			must(t, onChannel(address, func(ch *amqp.Channel) error {
				_, err := ch.QueueDelete(topic, false, false, false)
				return err
			}))
		})
		return address
	},
	publish: func(ctx context.Context, do task, keys []string) error {
		return onChannel(do.Address, func(ch *amqp.Channel) error {
			if err := ch.Confirm(false); err != nil {
				return err
			}
			var last *amqp.DeferredConfirmation
			for _, key := range keys {
				var err error
				last, err = ch.PublishWithDeferredConfirmWithContext(ctx, "", do.Topic, true, false,
					amqp.Publishing{Headers: amqp.Table{keyHeader: key}, DeliveryMode: amqp.Persistent})
				if err != nil {
					return err
				}
			}
			_, err := last.WaitContext(ctx)
			return err
		})
	},
	consume: func(ctx context.Context, do task, c *consumer) error {
		handle, err := handler(c, idemrabbitmq.Header(keyHeader))
		if err != nil {
			return err
		}
		return onChannel(do.Address, func(ch *amqp.Channel) error {
			if err := ch.Qos(50, 0, false); err != nil {
				return err
			}
			from, err := ch.ConsumeWithContext(ctx, do.Topic, "", false, false, false, false, nil)
			if err != nil {
				return err
			}
			each(func(m amqp.Delivery) {
				d := handle(ctx, m)
				if forgotten() { // and delivered again
					_ = m.Nack(false, true)
					return
				}
				_ = idemrabbitmq.Settle(ctx, m, d)
			}, from)
			return nil
		})
	},
	left: func(_ context.Context, do task, alone bool) (n int, err error) {
		if !alone {
			time.Sleep(2 * lease) // RabbitMQ does not tell this way what consumers have
		}
		err = onChannel(do.Address, func(ch *amqp.Channel) error {
			for {
				q, err := ch.QueueDeclarePassive(do.Topic, true, false, false, false, nil)
				if n = q.Messages; err != nil || !alone || q.Consumers == 0 {
					return err
				}
				time.Sleep(10 * time.Millisecond) // their connections are not gone yet
			}
		})
		return n, err
	},
}

func onChannel(address string, f func(ch *amqp.Channel) error) error {
	conn, err := amqp.Dial(address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	return f(ch)
}
