package idemkafka_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/idem-go/idem"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	"github.com/idem-go/idem/transports/idemkafka"
	"github.com/idem-go/idem/transports/idemqueue"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open starts a stand-in for Kafka that has the records with the keys in one partition.
func open(ctx context.Context, keys ...string) (address string, shut func(), err error) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	if err != nil {
		return "", nil, err
	}
	producer, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		return "", c.Close, err
	}
	defer producer.Close()
	for _, key := range keys {
		r := &kgo.Record{Topic: "orders", Key: []byte("customer 3"), Headers: []kgo.RecordHeader{{Key: "other"}, {Key: "key", Value: []byte(key)}}}
		if err := producer.ProduceSync(ctx, r).FirstErr(); err != nil {
			return "", c.Close, err
		}
	}
	return c.ListenAddrs()[0], c.Close, nil
}

func join(address string) (*kgo.Client, error) {
	return kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumerGroup("billing"), kgo.ConsumeTopics("orders"), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
}

func TestDecisionsMoveTheOffset(t *testing.T) {
	t.Parallel()
	address, shut, err := open(t.Context(), "a", "dead", "b", "later", "c")
	must(t, err)
	defer shut()
	key := idemkafka.Header("key")
	var seen, dead []string
	handle := func(_ context.Context, r *kgo.Record) idemqueue.Decision {
		k, err := key(r)
		must(t, err)
		seen = append(seen, k)
		switch {
		case k == "dead":
			return idemqueue.Decision{Action: idemqueue.DeadLetter, Err: errors.New("why")}
		case k == "later" && len(seen) < 7:
			return idemqueue.Decision{Action: idemqueue.Retry, Delay: time.Millisecond}
		}
		return idemqueue.Decision{Action: idemqueue.Ack}
	}
	moves := 0
	move := func(_ context.Context, r *kgo.Record, err error) error {
		if moves++; moves == 1 {
			return errors.New("the other topic is not there")
		}
		k, _ := key(r)
		dead = append(dead, k+" "+err.Error())
		return nil
	}
	run := func(until int) {
		client, err := join(address)
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var once sync.Once
		must(t, idemkafka.Run(ctx, client, func(ctx context.Context, r *kgo.Record) idemqueue.Decision {
			d := handle(ctx, r)
			if len(seen) == until {
				once.Do(cancel)
			}
			return d
		}, move))
		client.Close()
	}
	run(5) // ends while "later" waits: that is not committed
	run(8)
	if want := []string{"a", "dead", "dead", "b", "later", "later", "later", "c"}; !slices.Equal(seen, want) {
		t.Errorf("handled %q, want %q", seen, want)
	}
	if want := []string{"dead why"}; !slices.Equal(dead, want) {
		t.Errorf("dead are %q, want %q", dead, want)
	}
}

func TestKeysOfRecords(t *testing.T) {
	t.Parallel()
	key := idemqueue.FirstKey(idemkafka.Header("key"), idemkafka.RecordKey)
	for want, r := range map[string]*kgo.Record{
		"h": {Key: []byte("k"), Headers: []kgo.RecordHeader{{Key: "key", Value: []byte("h")}}}, "k": {Key: []byte("k")}, "": {},
	} {
		if got, _ := key(r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func ExampleRun() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	address, shut, err := open(ctx, "order-7", "order-7", "the last") // the producer sends twice
	if err != nil {
		fmt.Println(err)
		return
	}
	defer shut()
	store, _ := idemmemory.New()
	orders, _ := idem.NewOperation("orders", store, idem.AtLeastOnce)
	handle, err := idemqueue.Handler(orders, idemkafka.Header("key"), func(_ context.Context, r *kgo.Record) error {
		key, _ := idemkafka.Header("key")(r)
		fmt.Println("charging", key)
		if key == "the last" {
			cancel()
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	client, _ := join(address)
	defer client.Close()
	dead := func(context.Context, *kgo.Record, error) error { return nil } // produce it to another topic
	fmt.Println(idemkafka.Run(ctx, client, handle, dead))
	// Output:
	// charging order-7
	// charging the last
	// <nil>
}
