package idem_test

import (
	"context"
	"fmt"
	"log"

	"github.com/idem-go/idem"
	idemmemory "github.com/idem-go/idem/drivers/memory"
)

func Example() {
	store, err := idemmemory.New()
	if err != nil {
		log.Fatal(err)
	}
	payments, err := idem.NewOperation("payments", store, idem.AtLeastOnce)
	if err != nil {
		log.Fatal(err)
	}

	for range 2 { // the client retries
		receipt, err := idem.Execute(context.Background(), "pay-42", func(context.Context) (string, error) {
			fmt.Println("charging the card")
			return "receipt 1", nil
		}, idem.On(payments))
		fmt.Println(receipt, err)
	}
	// Output:
	// charging the card
	// receipt 1 <nil>
	// receipt 1 <nil>
}

// A key is tied to its request by a fingerprint.
func ExampleWithFingerprint() {
	store, _ := idemmemory.New()
	payments, _ := idem.NewOperation("payments", store, idem.AtLeastOnce)
	charge := func(context.Context) (string, error) { return "charged", nil }

	type request struct{ Cents int }
	for _, r := range []request{{500}, {900}} {
		_, err := idem.Execute(context.Background(), "pay-42", charge, idem.On(payments), idem.WithFingerprint(r))
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// idem: payments "pay-42": key used for another request: the fingerprint differs: use a new key for a new request
}

// Calls name an operation by its alias; the registry comes with the context.
func ExampleNewRegistry() {
	store, _ := idemmemory.New()
	payments, _ := idem.NewOperation("payments", store, idem.AtLeastOnce)
	mails, _ := idem.NewOperation("mails", store, idem.AtMostOnce)
	registry, err := idem.NewRegistry(payments, mails)
	if err != nil {
		log.Fatal(err)
	}
	ctx := idem.ContextWithRegistry(context.Background(), registry)

	res, err := idem.ExecuteResult(ctx, "order-7", send, idem.Alias("mails"))
	fmt.Println(res.Operation, res.Value, err)
	res, err = idem.ExecuteResult(ctx, "order-7", send) // the default
	fmt.Println(res.Operation, res.Value, err)
	// Output:
	// mails sent <nil>
	// payments sent <nil>
}

func send(context.Context) (string, error) { return "sent", nil }
