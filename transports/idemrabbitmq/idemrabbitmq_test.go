package idemrabbitmq_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/idem-go/idem"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	"github.com/idem-go/idem/internal/testenv"
	"github.com/idem-go/idem/transports/idemqueue"
	"github.com/idem-go/idem/transports/idemrabbitmq"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// queues is a queue and one for its dead letters on a real broker.
func queues(t *testing.T) (ch *amqp.Channel, orders, dead string) {
	t.Helper()
	conn, err := amqp.Dial(testenv.Backend(t, testenv.RabbitMQ))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	ch, err = conn.Channel()
	must(t, err)
	orders = "idemrabbitmq_" + rand.Text()[:10]
	dead = orders + "_dead"
	_, err = ch.QueueDeclare(dead, false, false, true, false, nil)
	must(t, err)
	_, err = ch.QueueDeclare(orders, false, false, true, false, amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
	must(t, err)
	t.Cleanup(func() {
		for _, q := range []string{orders, dead} {
			_, err := ch.QueueDelete(q, false, false, false)
			must(t, err)
		}
	})
	return ch, orders, dead
}

func get(t *testing.T, ch *amqp.Channel, queue string, wait time.Duration) (m amqp.Delivery, ok bool) {
	t.Helper()
	for end := time.Now().Add(wait); !ok && time.Now().Before(end); {
		var err error
		m, ok, err = ch.Get(queue, false)
		must(t, err)
	}
	return m, ok
}

func TestDecisionsReachTheBroker(t *testing.T) {
	t.Parallel()
	ch, orders, dead := queues(t)
	for _, row := range []struct {
		d     idemqueue.Decision
		queue string // where it is then
	}{
		{idemqueue.Decision{Action: idemqueue.Ack}, ""},
		{idemqueue.Decision{Action: idemqueue.DeadLetter, Err: errors.New("secret")}, dead},
		{idemqueue.Decision{Action: idemqueue.Retry}, orders},
		{idemqueue.Decision{Action: idemqueue.Retry, Delay: 100 * time.Millisecond}, orders},
	} {
		must(t, ch.PublishWithContext(t.Context(), "", orders, false, false, amqp.Publishing{}))
		m, ok := get(t, ch, orders, time.Minute)
		if !ok {
			t.Fatal("no message")
		}
		began := time.Now()
		must(t, idemrabbitmq.Settle(t.Context(), m, row.d))
		if took := time.Since(began); took < row.d.Delay {
			t.Errorf("given back after %v, want %v", took, row.d.Delay)
		}
		for _, queue := range []string{orders, dead} {
			wait := 100 * time.Millisecond
			if queue == row.queue {
				wait = time.Minute
			}
			m, ok := get(t, ch, queue, wait)
			if ok != (queue == row.queue) {
				t.Errorf("%v: in %s: %v", row.d, queue, ok)
			}
			if ok {
				must(t, m.Ack(false))
			}
		}
	}
}

// settled is what a broker would be told.
type settled struct{ what string }

func (s *settled) Ack(uint64, bool) error { s.what = "acknowledged"; return nil }
func (s *settled) Nack(_ uint64, _, re bool) error {
	s.what = fmt.Sprint("given back ", re)
	return nil
}
func (s *settled) Reject(_ uint64, re bool) error { s.what = fmt.Sprint("rejected ", re); return nil }
func delivery(key string) (*settled, amqp.Delivery) {
	s := new(settled)
	return s, amqp.Delivery{Acknowledger: s, Headers: amqp.Table{"idempotency-key": key}, MessageId: "id"}
}

func TestDelayEndsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, m := delivery("k")
	must(t, idemrabbitmq.Settle(ctx, m, idemqueue.Decision{Action: idemqueue.Retry, Delay: time.Hour}))
	if s.what != "given back true" {
		t.Error(s.what)
	}
}

func TestKeysOfMessages(t *testing.T) {
	t.Parallel()
	key := idemqueue.FirstKey(idemrabbitmq.Header("idempotency-key"), idemrabbitmq.MessageID)
	for given, want := range map[any]string{"k": "k", "": "id", 5: "id", nil: "id"} {
		_, m := delivery("")
		m.Headers["idempotency-key"] = given
		if got, err := key(m); got != want || err != nil {
			t.Errorf("%v gives %q, %v", given, got, err)
		}
	}
}

func Example() {
	store, _ := idemmemory.New()
	orders, _ := idem.NewOperation("orders", store, idem.AtLeastOnce)
	handle, err := idemqueue.Handler(orders, idemrabbitmq.Header("idempotency-key"), func(_ context.Context, m amqp.Delivery) error {
		fmt.Println("charging", m.Headers["idempotency-key"])
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	for range 2 { // in place of the channel's deliveries
		told, m := delivery("order-7")
		fmt.Println(idemrabbitmq.Settle(ctx, m, handle(ctx, m)), told.what)
	}
	// Output:
	// charging order-7
	// <nil> acknowledged
	// <nil> acknowledged
}
