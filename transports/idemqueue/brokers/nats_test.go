package brokers_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/idem-go/idem/transports/idemnats"
)

var natsBroker = broker{
	pause: 500 * time.Millisecond,
	start: func(t *testing.T, topic string) string {
		t.Helper()
		s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true})
		must(t, err)
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		if !s.ReadyForConnections(30 * time.Second) {
			t.Fatal("the server does not start")
		}
		nc, js := connect(t.Context(), s.ClientURL())
		defer nc.Close()
		_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: topic, Subjects: []string{topic}})
		must(t, err)
		_, err = js.CreateConsumer(t.Context(), topic, jetstream.ConsumerConfig{
			Durable: "billing", AckPolicy: jetstream.AckExplicitPolicy, AckWait: lease, MaxAckPending: 200,
		})
		must(t, err)
		return s.ClientURL()
	},
	publish: func(ctx context.Context, do task, keys []string) error {
		nc, js := connect(ctx, do.Address)
		defer nc.Close()
		for _, key := range keys {
			m := &nats.Msg{Subject: do.Topic, Header: nats.Header{keyHeader: {key}}}
			if _, err := js.PublishMsg(ctx, m); err != nil {
				return err
			}
		}
		return nil
	},
	consume: func(ctx context.Context, do task, c *consumer) error {
		_, js := connect(ctx, do.Address)
		handle, err := handler(c, idemnats.Header(keyHeader))
		if err != nil {
			return err
		}
		cons, err := js.Consumer(ctx, do.Topic, "billing")
		if err != nil {
			return err
		}
		from := make(chan jetstream.Msg)
		if _, err = cons.Consume(func(m jetstream.Msg) { from <- m }, jetstream.PullMaxMessages(20)); err != nil {
			return err
		}
		each(func(m jetstream.Msg) {
			if d := handle(ctx, m); !forgotten() {
				_ = idemnats.Settle(m, d)
			}
		}, from)
		return nil
	},
	left: func(ctx context.Context, do task, _ bool) (int, error) {
		nc, js := connect(ctx, do.Address)
		defer nc.Close()
		cons, err := js.Consumer(ctx, do.Topic, "billing")
		if err != nil {
			return 0, err
		}
		info, err := cons.Info(ctx)
		if err != nil {
			return 0, err
		}
		return int(info.NumPending) + info.NumAckPending, nil
	},
}

// connect panics where there is no server: nothing can go on without.
func connect(_ context.Context, address string) (*nats.Conn, jetstream.JetStream) {
	nc, err := nats.Connect(address)
	if err != nil {
		panic(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		panic(err)
	}
	return nc, js
}
