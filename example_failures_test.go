package idem_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem"
	idemmemory "github.com/idem-go/idem/drivers/memory"
)

// A failure that is an answer is replayed; one that passes frees the key.
func Example_failures() {
	store, _ := idemmemory.New()
	payments, _ := idem.NewOperation("payments", store, idem.AtLeastOnce)
	run := func(key string, failure error) {
		for range 2 {
			err := idem.Do(context.Background(), key, func(context.Context) error {
				fmt.Println("running", key)
				return failure
			}, idem.On(payments))
			_, replayed := errors.AsType[*idem.ReplayedError](err)
			fmt.Printf("  %v, replayed: %v\n", err, replayed)
		}
	}
	run("declined", errors.New("card declined"))
	run("timeout", context.DeadlineExceeded)
	// Output:
	// running declined
	//   card declined, replayed: false
	//   card declined, replayed: true
	// running timeout
	//   context deadline exceeded, replayed: false
	// running timeout
	//   context deadline exceeded, replayed: false
}

// A guard never runs again. When nobody knows how a run ended, somebody has to
// find out and settle the key.
func ExampleOperation_Resolve() {
	store, _ := idemmemory.New()
	transfers, _ := idem.NewOperation("transfers", store, idem.AtMostOnce)
	ctx := context.Background()
	transfer := func(context.Context) (string, error) {
		return "", context.DeadlineExceeded // the bank did not answer
	}
	_, err := idem.Execute(ctx, "tx-1", transfer, idem.On(transfers))
	fmt.Println(err)
	_, err = idem.Execute(ctx, "tx-1", transfer, idem.On(transfers))
	fmt.Println(errors.Is(err, idem.ErrOutcomeUnknown))

	// The bank's statement says that it went through.
	if err := transfers.Resolve(ctx, "tx-1", idem.Succeeded("booked")); err != nil {
		fmt.Println(err)
	}
	booked, err := idem.Execute(ctx, "tx-1", transfer, idem.On(transfers))
	fmt.Println(booked, err)
	// Output:
	// context deadline exceeded
	// true
	// booked <nil>
}

// An effect that keeps the highest fence it has seen can refuse a run that
// lost its lease and does not know it.
func ExampleAttempt_Fence() {
	store, _ := idemmemory.New()
	exports, _ := idem.NewOperation("exports", store, idem.AtLeastOnce)
	highest := int64(0)
	write := func(fence int64) error {
		if fence < highest {
			return errors.New("a newer run has written")
		}
		highest = fence
		return nil
	}
	err := idem.Do(context.Background(), "2026-11", func(ctx context.Context) error {
		a, _ := idem.FromContext(ctx)
		if err := a.Extend(ctx, 10*time.Minute); err != nil { // this one takes long
			return err
		}
		return write(a.Fence())
	}, idem.On(exports))
	fmt.Println(err, highest > 0)
	// Output: <nil> true
}
