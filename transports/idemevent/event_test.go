package idemevent_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	idemsql "github.com/idem-go/idem/drivers/sql"
	"github.com/idem-go/idem/transports/idemevent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type orderPaid struct{ ID string }

func (o orderPaid) IdempotencyKey() string { return o.ID }

type plain struct{ ID string }

func memory(t *testing.T) driver.Driver {
	t.Helper()
	s, err := idemmemory.New()
	must(t, err)
	return s
}

func sqlite(t *testing.T) driver.Driver {
	t.Helper()
	db := sqlx.MustOpen("sqlite", idemsql.SQLiteDSN(filepath.Join(t.TempDir(), "e.db")))
	t.Cleanup(func() { _ = db.Close() })
	s, err := idemsql.New(db)
	must(t, err)
	must(t, s.Migrate(t.Context()))
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func operation(t *testing.T, d driver.Driver, g idem.Guarantee) *idem.Operation {
	t.Helper()
	op, err := idem.NewOperation("events", d, g)
	must(t, err)
	return op
}

var errBroken = errors.New("broken")

func TestSecondDispatchReachesThoseThatHaveNotCompleted(t *testing.T) { // CASES E1
	t.Parallel()
	for name, open := range map[string]func(*testing.T) driver.Driver{"memory": memory, "sqlite": sqlite} {
		for _, g := range []idem.Guarantee{idem.AtLeastOnce, idem.ExactlyOnce} {
			if name == "memory" && g == idem.ExactlyOnce {
				continue
			}
			d, err := idemevent.NewDispatcher[orderPaid](operation(t, open(t), g))
			must(t, err)
			var ran []string
			broken := true
			for _, name := range []string{"first", "second", "third"} {
				must(t, d.Listen(name, func(context.Context, orderPaid) error {
					ran = append(ran, name)
					if broken && name != "first" {
						return errBroken
					}
					return nil
				}))
			}
			if err := d.Dispatch(t.Context(), orderPaid{"o-1"}); !errors.Is(err, errBroken) {
				t.Error(err)
			}
			broken = false
			must(t, d.Dispatch(t.Context(), orderPaid{"o-1"}))
			must(t, d.Dispatch(t.Context(), orderPaid{"o-1"}))
			if want := []string{"first", "second", "third", "second", "third"}; !slices.Equal(ran, want) {
				t.Errorf("%s, %v: %q ran, want %q", name, g, ran, want)
			}
		}
	}
}

func TestOneListenerInTwoRegistrationsIsOne(t *testing.T) { // CASES E1
	t.Parallel()
	op := operation(t, memory(t), idem.AtLeastOnce)
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
		if err == nil || !strings.Contains(err.Error(), says) {
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
