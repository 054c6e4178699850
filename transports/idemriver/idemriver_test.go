package idemriver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/idem-go/idem"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	"github.com/idem-go/idem/transports/idemriver"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func operation(t *testing.T, g idem.Guarantee) *idem.Operation {
	t.Helper()
	s, err := idemmemory.New()
	must(t, err)
	op, err := idem.NewOperation("orders", s, g)
	must(t, err)
	return op
}

func job(kind, key string) *rivertype.JobRow {
	return &rivertype.JobRow{Kind: kind, Metadata: []byte(`{"key":"` + key + `","n":5}`)}
}

var errBroken = errors.New("broken")

func TestDecisionsReachRiver(t *testing.T) {
	t.Parallel()
	once, err := idemriver.Middleware(operation(t, idem.AtLeastOnce), idemriver.Metadata("key"))
	must(t, err)
	runs := 0
	work := func(j *rivertype.JobRow, end error) error {
		return once.Work(t.Context(), j, func(ctx context.Context) error {
			if _, ok := idem.FromContext(ctx); !ok {
				t.Error("the worker is in no run")
			}
			runs++
			return end
		})
	}
	if err := work(job("charge", "k"), errBroken); !errors.Is(err, errBroken) || runs != 1 {
		t.Error(err, runs)
	}
	for range 2 {
		if err := work(job("charge", "k"), nil); err != nil || runs != 2 {
			t.Error(err, runs)
		}
	}
	if err := work(job("refund", "k"), nil); err != nil || runs != 3 { // another kind, another key space
		t.Error(err, runs)
	}
	var cancelled *rivertype.JobCancelError
	for _, j := range []*rivertype.JobRow{job("charge", ""), {Kind: "charge"}, {Kind: "charge", Metadata: []byte(`{"key":5}`)}, {Metadata: []byte("{")}} {
		if err := work(j, nil); !errors.As(err, &cancelled) || !errors.Is(err, idem.ErrInvalidKey) || runs != 3 {
			t.Error(err, runs)
		}
	}
}

func TestJobInProgressIsSnoozed(t *testing.T) {
	t.Parallel()
	once, err := idemriver.Middleware(operation(t, idem.AtLeastOnce), idemriver.Arg("id"))
	must(t, err)
	j := &rivertype.JobRow{Kind: "charge", EncodedArgs: []byte(`{"id":"order-7"}`)}
	var snoozed *rivertype.JobSnoozeError
	must(t, once.Work(t.Context(), j, func(context.Context) error {
		err := once.Work(t.Context(), j, func(context.Context) error { t.Error("it ran"); return nil })
		if !errors.As(err, &snoozed) || snoozed.Duration <= 0 || snoozed.Duration > idem.DefaultLeaseTTL {
			t.Error(err)
		}
		return nil
	}))
}

func TestGuardsDuplicateIsCompleted(t *testing.T) {
	t.Parallel()
	once, err := idemriver.Middleware(operation(t, idem.AtMostOnce), idemriver.Metadata("key"))
	must(t, err)
	err = once.Work(t.Context(), job("charge", "k"), func(context.Context) error { return context.DeadlineExceeded })
	if _, cancelled := errors.AsType[*rivertype.JobCancelError](err); !cancelled {
		t.Error(err)
	}
	must(t, once.Work(t.Context(), job("charge", "k"), func(context.Context) error { t.Error("it ran"); return nil }))
}

func TestWrongMiddlewareIsRefused(t *testing.T) {
	t.Parallel()
	op := operation(t, idem.AtLeastOnce)
	for says, err := range map[string]error{
		"the key function is nil": second(idemriver.Middleware(op, nil)),
		"the operation is nil":    second(idemriver.Middleware(nil, idemriver.Arg("id"))),
		"was the unit":            second(idemriver.Middleware(op, idemriver.Arg("id"), idem.WithWait(time.Duration(5)))),
	} {
		if !errors.Is(err, idem.ErrConfig) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func ExampleMiddleware() {
	store, _ := idemmemory.New()
	orders, _ := idem.NewOperation("orders", store, idem.AtLeastOnce)
	once, err := idemriver.Middleware(orders, idemriver.Arg("order_id"))
	if err != nil {
		fmt.Println(err)
		return
	}
	// A client has it in river.Config{Middleware: []rivertype.Middleware{once}}; here its part is played by hand.
	for range 2 { // the job was inserted twice
		inserted := &rivertype.JobRow{Kind: "charge", EncodedArgs: []byte(`{"order_id":"order-7"}`)}
		fmt.Println(once.Work(context.Background(), inserted, func(context.Context) error {
			fmt.Println("charging")
			return nil
		}))
	}
	// Output:
	// charging
	// <nil>
	// <nil>
}
