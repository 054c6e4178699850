package idemstreams_test

import (
	"context"
	"log"

	"github.com/redis/rueidis"

	"github.com/idem-go/idem"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	"github.com/idem-go/idem/transports/idemqueue"
	"github.com/idem-go/idem/transports/idemstreams"
)

// It needs a server, so it is only compiled here.
func ExampleConsumer() { //nolint:testableexamples // see above
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	store, _ := idemmemory.New()
	orders, _ := idem.NewOperation("orders", store, idem.AtLeastOnce)
	handle, err := idemqueue.Handler(orders, idemstreams.Field("idempotency-key"), func(context.Context, idemstreams.Entry) error {
		return nil // charge the card
	})
	if err != nil {
		log.Fatal(err) //nolint:gocritic // the process ends anyway
	}
	c := idemstreams.Consumer{Client: client, Stream: "orders", Group: "billing", Name: "host-1", Dead: "orders.dead"}
	log.Fatal(c.Run(context.Background(), handle))
}
