package idem_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/codec"
	"github.com/idem-go/idem/codec/aead"
	idemmemory "github.com/idem-go/idem/drivers/memory"
)

// A key whose run died, or failed in a way that says nothing, is settled by
// asking whoever knows.
func ExampleWithReconcile() {
	store, _ := idemmemory.New()
	transfers, _ := idem.NewOperation("transfers", store, idem.AtMostOnce,
		idem.WithReconcile(func(_ context.Context, key string) (idem.Outcome, error) {
			fmt.Println("asking the bank for", key)
			return idem.Succeeded("booked"), nil // or Failed(err), or NotRun()
		}))
	for range 3 {
		status, err := idem.Execute(context.Background(), "tx-1", func(context.Context) (string, error) {
			return "", context.DeadlineExceeded // the bank did not answer
		}, idem.On(transfers))
		fmt.Printf("%q, %v\n", status, err)
	}
	// Output:
	// "", context deadline exceeded
	// asking the bank for tx-1
	// "booked", <nil>
	// "booked", <nil>
}

// A classifier says what failures mean; for what it does not know the next one is asked.
func ExampleWithClassifier() {
	errLimit := errors.New("rate limit reached")
	store, _ := idemmemory.New()
	payments, _ := idem.NewOperation("payments", store, idem.AtLeastOnce, idem.WithClassifier(func(err error) idem.FailureKind {
		if errors.Is(err, errLimit) {
			return idem.KindInfrastructure // it will pass: do not store it
		}
		return idem.KindUnknown
	}))
	for _, failure := range []error{errLimit, nil} {
		fmt.Println(idem.Do(context.Background(), "pay-42", func(context.Context) error { return failure }, idem.On(payments)))
	}
	// Output:
	// rate limit reached
	// <nil>
}

// Outcomes are encrypted in the store. To rotate, put a new key in front and
// keep the old one behind it for as long as its records live.
func ExampleWithTransforms() {
	key := func(id string, b byte) aead.Key { // take secrets from where you keep yours
		return aead.Key{ID: id, Secret: bytes.Repeat([]byte{b}, aead.SecretSize)}
	}
	store, _ := idemmemory.New()
	call := func(ring codec.Transform) {
		cards, err := idem.NewOperation("cards", store, idem.AtLeastOnce, idem.WithTransforms(ring))
		if err != nil {
			fmt.Println(err)
			return
		}
		number, err := idem.Execute(context.Background(), "card-1", func(context.Context) (string, error) {
			fmt.Println("issuing")
			return "4111", nil
		}, idem.On(cards))
		fmt.Println(number, errors.Is(err, idem.ErrUnreadable))
	}
	before, _ := aead.New(key("2026-10", 1))
	rotated, _ := aead.New(key("2026-11", 2), key("2026-10", 1))
	wrong, _ := aead.New(key("2026-11", 2))
	call(before)
	call(rotated)
	call(wrong)
	// Output:
	// issuing
	// 4111 false
	// 4111 false
	//  true
}

type receiptV2 struct {
	Cents    int
	Currency string
}

// A type that was renamed reads what was stored under its former name.
func ExampleWithTypeName() {
	type receipt struct{ Cents int }
	store, _ := idemmemory.New()
	ctx := context.Background()
	old, _ := idem.NewOperation("payments", store, idem.AtLeastOnce, idem.WithTypeName[receipt]("receipt"))
	_, _ = idem.Execute(ctx, "pay-42", func(context.Context) (receipt, error) { return receipt{500}, nil }, idem.On(old))

	renamed, _ := idem.NewOperation("payments", store, idem.AtLeastOnce, idem.WithTypeName[receiptV2]("receipt.v2", "receipt"))
	got, err := idem.Execute(ctx, "pay-42", func(context.Context) (receiptV2, error) { return receiptV2{}, nil }, idem.On(renamed))
	fmt.Printf("%+v %v\n", got, err)
	// Output:
	// {Cents:500 Currency:} <nil>
}
