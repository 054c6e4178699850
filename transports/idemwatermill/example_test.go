package idemwatermill_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/idem-go/idem"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	"github.com/idem-go/idem/transports/idemwatermill"
)

// A message is published twice, and its handler fails at first.
func ExampleMiddleware() {
	store, _ := idemmemory.New()
	orders, _ := idem.NewOperation("orders", store, idem.AtLeastOnce)
	once, err := idemwatermill.Middleware(orders, idemwatermill.Metadata("idempotency-key"))
	if err != nil {
		fmt.Println(err)
		return
	}
	bus := gochannel.NewGoChannel(gochannel.Config{BlockPublishUntilSubscriberAck: true}, watermill.NopLogger{})
	router, _ := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	poison, _ := middleware.PoisonQueueWithFilter(bus, "orders.dead", idemwatermill.IsDeadLetter)
	router.AddMiddleware(poison, once)
	down := true
	router.AddConsumerHandler("charge", "orders", bus, func(m *message.Message) error {
		if down {
			down = false
			return errors.New("the bank does not answer")
		}
		fmt.Println("charging", string(m.Payload))
		return nil
	})
	go func() { _ = router.Run(context.Background()) }()
	<-router.Running()
	for range 2 {
		m := message.NewMessage(watermill.NewUUID(), []byte("order 7"))
		m.Metadata.Set("idempotency-key", "order-7")
		fmt.Println(bus.Publish("orders", m))
	}
	_ = router.Close()
	// Output:
	// charging order 7
	// <nil>
	// <nil>
}
