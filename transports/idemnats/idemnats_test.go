package idemnats_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/idem-go/idem"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	"github.com/idem-go/idem/transports/idemnats"
	"github.com/idem-go/idem/transports/idemqueue"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open starts a server in this process, with the stream orders and a consumer of it.
func open(ctx context.Context, dir string) (js jetstream.JetStream, cons jetstream.Consumer, shut func(), err error) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoSigs: true})
	if err != nil {
		return nil, nil, nil, err
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		return nil, nil, s.Shutdown, errors.New("the server does not start")
	}
	nc, err := nats.Connect(s.ClientURL())
	if err != nil {
		return nil, nil, s.Shutdown, err
	}
	shut = func() { nc.Close(); s.Shutdown(); s.WaitForShutdown() }
	if js, err = jetstream.New(nc); err != nil {
		return nil, nil, shut, err
	}
	if _, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: "orders", Subjects: []string{"orders"}}); err != nil {
		return nil, nil, shut, err
	}
	cons, err = js.CreateConsumer(ctx, "orders", jetstream.ConsumerConfig{Durable: "billing", AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Minute})
	return js, cons, shut, err
}

func TestDecisionsReachTheServer(t *testing.T) {
	t.Parallel()
	js, cons, shut, err := open(t.Context(), t.TempDir())
	must(t, err)
	defer shut()
	for _, row := range []struct {
		d     idemqueue.Decision
		again bool
		least time.Duration
	}{
		{idemqueue.Decision{Action: idemqueue.Ack}, false, 0},
		{idemqueue.Decision{Action: idemqueue.DeadLetter, Err: errors.New("secret")}, false, 0},
		{idemqueue.Decision{Action: idemqueue.Retry}, true, 0},
		{idemqueue.Decision{Action: idemqueue.Retry, Delay: 300 * time.Millisecond}, true, 300 * time.Millisecond},
	} {
		_, err := js.Publish(t.Context(), "orders", nil)
		must(t, err)
		m, err := cons.Next()
		must(t, err)
		must(t, idemnats.Settle(m, row.d))
		began := time.Now()
		wait := 200 * time.Millisecond
		if row.again {
			wait = time.Minute
		}
		m, err = cons.Next(jetstream.FetchMaxWait(wait))
		if (err == nil) != row.again || row.again && time.Since(began) < row.least {
			t.Errorf("%v: delivered again: %v after %v", row.d, err == nil, time.Since(began))
		}
		if err == nil {
			must(t, m.DoubleAck(t.Context()))
		}
	}
}

func TestKeysOfMessages(t *testing.T) {
	t.Parallel()
	js, cons, shut, err := open(t.Context(), t.TempDir())
	must(t, err)
	defer shut()
	_, err = js.PublishMsg(t.Context(), &nats.Msg{Subject: "orders", Header: nats.Header{"Idempotency-Key": {"k"}, nats.MsgIdHdr: {"id"}}})
	must(t, err)
	_, err = js.Publish(t.Context(), "orders", nil)
	must(t, err)
	key := idemqueue.FirstKey(idemnats.Header("Idempotency-Key"), idemnats.MessageID)
	for _, want := range []string{"k", ""} {
		m, err := cons.Next()
		must(t, err)
		if got, _ := key(m); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func Example() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "idemnats")
	defer func() { _ = os.RemoveAll(dir) }()
	js, consumer, shut, err := open(ctx, dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer shut()

	store, _ := idemmemory.New()
	orders, _ := idem.NewOperation("orders", store, idem.AtLeastOnce)
	handle, err := idemqueue.Handler(orders, idemnats.Header("Idempotency-Key"), func(_ context.Context, m jetstream.Msg) error {
		fmt.Println("charging", string(m.Data()))
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 { // the producer sends twice
		_, _ = js.PublishMsg(ctx, &nats.Msg{Subject: "orders", Header: nats.Header{"Idempotency-Key": {"order-7"}}, Data: []byte("order 7")})
	}
	for range 2 {
		m, _ := consumer.Next()
		d := handle(ctx, m)
		fmt.Println(d.Action, idemnats.Settle(m, d))
	}
	// Output:
	// charging order 7
	// Ack <nil>
	// Ack <nil>
}
