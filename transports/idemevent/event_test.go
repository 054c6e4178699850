package idemevent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	"github.com/idem-go/idem/transports/idemevent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type orderPaid struct{ ID string }

func (o orderPaid) IdempotencyKey() string { return o.ID }

type plain struct{ ID string }

func operation(t *testing.T, d driver.Driver, g idem.Guarantee) *idem.Operation {
	t.Helper()
	op, err := idem.NewOperation("events", d, g)
	must(t, err)
	return op
}

var errBroken = errors.New("broken")

// TestEvents is CASES E1 on each store and guarantee.
func TestEvents(t *testing.T) {
	t.Parallel()
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, g := range []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce, idem.ExactlyOnce} {
				d := open(t)
				if !d.Capabilities().Guarantees.Has(g) {
					continue
				}
				for rule, check := range rules {
					t.Run(g.String()+"/"+rule, func(t *testing.T) { check(t, operation(t, d, g)) })
				}
			}
		})
	}
}

var rules = map[string]func(*testing.T, *idem.Operation){
	"a second dispatch reaches those that have not completed": func(t *testing.T, op *idem.Operation) {
		t.Helper()
		d, err := idemevent.NewDispatcher[orderPaid](op)
		must(t, err)
		var ran []string
		broken := true
		for _, name := range []string{"first", "second", "third", "fourth"} {
			must(t, d.Listen(name, func(context.Context, orderPaid) error {
				ran = append(ran, name)
				if broken && (name == "second" || name == "third") {
					return errBroken
				}
				return nil
			}))
		}
		if err := d.Dispatch(t.Context(), orderPaid{"o-1"}); !errors.Is(err, errBroken) {
			t.Error(err)
		}
		broken = false
		want := []string{"first", "second", "third", "fourth", "second", "third"}
		if op.Guarantee() == idem.AtMostOnce { // the failures are stored: they never run again
			want = want[:4]
		}
		for range 2 {
			if err := d.Dispatch(t.Context(), orderPaid{"o-1"}); (err != nil) != (op.Guarantee() == idem.AtMostOnce) {
				t.Error(err)
			}
		}
		if !slices.Equal(ran, want) {
			t.Errorf("%q ran, want %q", ran, want)
		}
		if _ = d.Dispatch(t.Context(), orderPaid{"o-2"}); len(ran) != len(want)+4 {
			t.Errorf("another event ran %q", ran[len(want):])
		}
	},
	"one listener in two registrations is one": func(t *testing.T, op *idem.Operation) {
		t.Helper()
		runs := 0
		for range 2 {
			d, err := idemevent.NewDispatcher[orderPaid](op)
			must(t, err)
			must(t, d.Listen("mail", func(context.Context, orderPaid) error { runs++; return nil }))
			must(t, d.Dispatch(t.Context(), orderPaid{"o-1"}))
		}
		if runs != 1 {
			t.Error(runs, "runs")
		}
	},
	"an event without an identity is an error": func(t *testing.T, op *idem.Operation) {
		t.Helper()
		d, err := idemevent.NewDispatcher[orderPaid](op)
		must(t, err)
		for _, name := range []string{"one", "two"} {
			must(t, d.Listen(name, func(context.Context, orderPaid) error { t.Error("it ran"); return nil }))
		}
		if err := d.Dispatch(t.Context(), orderPaid{""}); !errors.Is(err, idem.ErrInvalidKey) {
			t.Error(err)
		}
	},
}

func TestEventWithoutAnIdentityIsAnError(t *testing.T) { // CASES E1
	t.Parallel()
	op := operation(t, memory(t), idem.AtLeastOnce)
	ran := func(context.Context, plain) error { t.Error("it ran"); return nil }
	l, err := idemevent.Listener(op, "mail", ran)
	must(t, err)
	if err := l(t.Context(), plain{"p"}); !errors.Is(err, idem.ErrInvalidKey) || !strings.Contains(err.Error(), "IdempotencyKey") {
		t.Error(err)
	}
	runs := 0
	key, err := idem.KeyPath[plain]("ID")
	must(t, err)
	l, err = idemevent.Listener(op, "mail", func(context.Context, plain) error { runs++; return nil }, idemevent.WithKey(key))
	must(t, err)
	must(t, l(t.Context(), plain{"p"}))
	must(t, l(t.Context(), plain{"p"}))
	if err := l(t.Context(), plain{}); !errors.Is(err, idem.ErrInvalidKey) || runs != 1 {
		t.Error(err, runs)
	}
}

func TestGuardedListenerIsDoneOnceItHasBegun(t *testing.T) {
	t.Parallel()
	runs := 0
	l, err := idemevent.Listener(operation(t, memory(t), idem.AtMostOnce), "mail", func(context.Context, orderPaid) error {
		runs++
		return context.DeadlineExceeded
	})
	must(t, err)
	if err := l(t.Context(), orderPaid{"o-1"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := l(t.Context(), orderPaid{"o-1"}); err != nil || runs != 1 {
		t.Error(err, runs)
	}
}

func TestWrongListenerIsRefused(t *testing.T) {
	t.Parallel()
	op := operation(t, memory(t), idem.AtLeastOnce)
	fn := func(context.Context, orderPaid) error { return nil }
	d, err := idemevent.NewDispatcher[orderPaid](op)
	must(t, err)
	must(t, d.Listen("mail", fn))
	for says, err := range map[string]error{
		"has no name":          d.Listen(" ", fn),
		"is nil":               d.Listen("x", nil),
		"two listeners named":  d.Listen("mail", fn),
		"the operation is nil": second(idemevent.NewDispatcher[orderPaid](nil)),
		"was the unit":         second(idemevent.Listener(op, "y", fn, idemevent.With[orderPaid](idem.WithWait(5)))),
	} {
		if !errors.Is(err, idem.ErrConfig) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func ExampleDispatcher() {
	store, _ := idemmemory.New()
	events, _ := idem.NewOperation("events", store, idem.AtLeastOnce)
	d, _ := idemevent.NewDispatcher[orderPaid](events)
	down := true
	_ = d.Listen("mail the receipt", func(context.Context, orderPaid) error { fmt.Println("mailing"); return nil })
	_ = d.Listen("tell the warehouse", func(context.Context, orderPaid) error {
		if down {
			return errors.New("the warehouse does not answer")
		}
		fmt.Println("telling")
		return nil
	})
	fmt.Println(d.Dispatch(context.Background(), orderPaid{"o-1"}))
	down = false
	fmt.Println(d.Dispatch(context.Background(), orderPaid{"o-1"}))
	// Output:
	// mailing
	// the warehouse does not answer
	// telling
	// <nil>
}
