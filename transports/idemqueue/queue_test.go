package idemqueue_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	idemsql "github.com/idem-go/idem/drivers/sql"
	"github.com/idem-go/idem/transports/idemqueue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type message struct {
	Header, ID string
	Cents      int
}

func keyOf(m message) (string, error) { return m.Header, nil }

func memory(t *testing.T) driver.Driver {
	t.Helper()
	s, err := idemmemory.New()
	must(t, err)
	return s
}

func sqlite(t *testing.T) driver.Driver {
	t.Helper()
	db := sqlx.MustOpen("sqlite", idemsql.SQLiteDSN(filepath.Join(t.TempDir(), "q.db")))
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

// consumer is a handler whose end can be set, and how often it ran.
type consumer struct {
	handle func(context.Context, message) idemqueue.Decision
	runs   int
	end    func() error
}

func consume(t *testing.T, d driver.Driver, g idem.Guarantee, opts ...idem.WrapOption) *consumer {
	t.Helper()
	op, err := idem.NewOperation("orders", d, g)
	must(t, err)
	c := &consumer{end: func() error { return nil }}
	c.handle, err = idemqueue.Handler(op, keyOf, func(context.Context, message) error { c.runs++; return c.end() }, opts...)
	must(t, err)
	return c
}

func (c *consumer) wants(t *testing.T, m message, a idemqueue.Action, runs int) idemqueue.Decision {
	t.Helper()
	d := c.handle(t.Context(), m)
	if d.Action != a || c.runs != runs {
		t.Errorf("%+v after %d runs, want %v after %d", d, c.runs, a, runs)
	}
	return d
}

var errBroken = errors.New("broken")

func TestFailedDeliveryRunsAgainAndAFinishedOneIsAcknowledged(t *testing.T) { // CASES Q1
	t.Parallel()
	for name, open := range map[string]func(*testing.T) driver.Driver{"memory": memory, "sqlite": sqlite} {
		for _, g := range []idem.Guarantee{idem.AtLeastOnce, idem.ExactlyOnce} {
			if name == "memory" && g == idem.ExactlyOnce {
				continue
			}
			c := consume(t, open(t), g)
			c.end = func() error { return errBroken } // a domain failure, which the default policy would keep
			if d := c.wants(t, message{Header: "k"}, idemqueue.Retry, 1); !errors.Is(d.Err, errBroken) {
				t.Error(d.Err)
			}
			c.wants(t, message{Header: "k"}, idemqueue.Retry, 2)
			c.end = func() error { return nil }
			c.wants(t, message{Header: "k"}, idemqueue.Ack, 3)
			c.wants(t, message{Header: "k"}, idemqueue.Ack, 3)
		}
	}
}

func TestWhatIsInFlightIsNeverAcknowledged(t *testing.T) { // CASES Q1
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, g := range []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce} {
			d := memory(t)
			first, second := consume(t, d, g), consume(t, d, g)
			over := make(chan idemqueue.Decision)
			first.end = func() error { time.Sleep(time.Minute); return nil }
			go func() { over <- first.handle(context.Background(), message{Header: "k"}) }()
			synctest.Wait()
			if d := second.wants(t, message{Header: "k"}, idemqueue.Retry, 0); d.Delay <= 0 || d.Delay > idem.DefaultLeaseTTL {
				t.Error("delay", d.Delay)
			}
			if d := <-over; d.Action != idemqueue.Ack {
				t.Error(d)
			}
			second.wants(t, message{Header: "k"}, idemqueue.Ack, 0)
		}
	})
}

func TestGuardsMessageIsDeadOnceAndThenAcknowledged(t *testing.T) { // CASES Q1
	t.Parallel()
	c := consume(t, memory(t), idem.AtMostOnce)
	c.end = func() error { return context.DeadlineExceeded }
	c.wants(t, message{Header: "k"}, idemqueue.DeadLetter, 1)
	c.wants(t, message{Header: "k"}, idemqueue.Ack, 1)
	without := consume(t, memory(t), idem.AtMostOnce)
	without.wants(t, message{Header: "k"}, idemqueue.Ack, 1)
	without.wants(t, message{Header: "k"}, idemqueue.Ack, 1)
}

func TestMessageWithoutAKeyOrWithAnothersIsDead(t *testing.T) { // CASES Q1
	t.Parallel()
	c := consume(t, memory(t), idem.AtLeastOnce, idem.WithInputFingerprint("Cents"))
	c.wants(t, message{}, idemqueue.DeadLetter, 0)
	c.wants(t, message{Header: "k", Cents: 5}, idemqueue.Ack, 1)
	c.wants(t, message{Header: "k", Cents: 9}, idemqueue.DeadLetter, 1)
	c.wants(t, message{Header: "k", Cents: 5}, idemqueue.Ack, 1)
}

func TestStoredFailureIsDeadIfThePolicyKeepsIt(t *testing.T) {
	t.Parallel()
	c := consume(t, memory(t), idem.AtLeastOnce, idem.WithFailurePolicy(idem.PolicyCache))
	c.end = func() error { return errBroken }
	c.handle(t.Context(), message{Header: "k"})
	c.wants(t, message{Header: "k"}, idemqueue.DeadLetter, 1)
}

func TestDuplicateOfAFinishedMessageHasItsResult(t *testing.T) {
	t.Parallel()
	op, err := idem.NewOperation("orders", memory(t), idem.AtLeastOnce, idem.WithMaxResultSize(100))
	must(t, err)
	runs := 0
	handle, err := idemqueue.Processor(op, keyOf, func(_ context.Context, m message) ([]string, error) {
		runs++
		return []string{strings.Repeat("x", m.Cents)}, nil
	})
	must(t, err)
	for range 2 {
		if out, d := handle(t.Context(), message{Header: "small", Cents: 5}); d.Action != idemqueue.Ack || len(out) != 1 || out[0] != "xxxxx" || runs != 1 {
			t.Error(out, d, runs)
		}
	}
	if _, d := handle(t.Context(), message{Header: "large", Cents: 500}); d.Action != idemqueue.Ack {
		t.Error(d)
	}
	out, d := handle(t.Context(), message{Header: "large", Cents: 500})
	if d.Action != idemqueue.DeadLetter || !errors.Is(d.Err, idem.ErrResultOmitted) || out != nil || runs != 2 {
		t.Error(out, d, runs)
	}
}

func TestMessagesOfABatchHaveTheirOwnDecisions(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) driver.Driver{"memory": memory, "sqlite": sqlite} {
		for _, g := range []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce, idem.ExactlyOnce} {
			if name == "memory" && g == idem.ExactlyOnce {
				continue
			}
			op, err := idem.NewOperation("orders", open(t), g)
			must(t, err)
			broken := true
			var runs atomic.Int64
			handle, err := idemqueue.BatchHandler(op, keyOf, func(_ context.Context, m message) error {
				runs.Add(1)
				if m.Cents == 13 && broken {
					return errBroken
				}
				return nil
			}, idem.WithInputFingerprint("Cents"))
			must(t, err)
			batch := []message{{Header: "a"}, {Header: "b", Cents: 13}, {}, {Header: "a"}, {Header: "a", Cents: 9}}
			failed, again := idemqueue.Retry, idemqueue.Ack
			if g == idem.AtMostOnce { // the failure is stored
				failed, again = idemqueue.DeadLetter, idemqueue.DeadLetter
			}
			for _, want := range [][]idemqueue.Action{
				{idemqueue.Ack, failed, idemqueue.DeadLetter, idemqueue.Ack, idemqueue.DeadLetter},
				{idemqueue.Ack, again, idemqueue.DeadLetter, idemqueue.Ack, idemqueue.DeadLetter},
			} {
				for i, d := range handle(t.Context(), batch) {
					if d.Action != want[i] {
						t.Errorf("%s, %v, message %d: %+v, want %v", name, g, i, d, want[i])
					}
				}
				broken = false
			}
			if want := map[bool]int64{true: 2, false: 3}[g == idem.AtMostOnce]; runs.Load() != want {
				t.Errorf("%s, %v: %d runs, want %d", name, g, runs.Load(), want)
			}
		}
	}
}

type down struct{ driver.Driver }

func (down) Claim(context.Context, driver.ClaimParams) (driver.ClaimResult, error) {
	return driver.ClaimResult{}, errBroken
}

func TestMessageComesBackWhenTheStoreIsDown(t *testing.T) {
	t.Parallel()
	consume(t, &down{memory(t)}, idem.AtLeastOnce).wants(t, message{Header: "k"}, idemqueue.Retry, 0)
}

func TestHeaderWinsOverTheBrokersID(t *testing.T) { // CASES Q2
	t.Parallel()
	key := idemqueue.FirstKey(keyOf, func(m message) (string, error) {
		if m.ID == "" {
			return "", errBroken
		}
		return m.ID, nil
	})
	for want, m := range map[string]message{"h": {Header: "h", ID: "i"}, "i": {ID: "i"}} {
		if got, err := key(m); err != nil || got != want {
			t.Error(got, err)
		}
	}
	if got, err := key(message{}); !errors.Is(err, errBroken) || got != "" {
		t.Error(got, err)
	}
}

func TestWrongHandlerIsRefused(t *testing.T) {
	t.Parallel()
	op, err := idem.NewOperation("orders", memory(t), idem.AtLeastOnce)
	must(t, err)
	fn := func(context.Context, message) error { return nil }
	for says, err := range map[string]error{
		"the handler is nil":                 second(idemqueue.Handler[message](op, keyOf, nil)),
		"idemqueue: the handler is nil":      second(idemqueue.BatchHandler[message](op, keyOf, nil)),
		"handler is nil":                     second(idemqueue.Processor[message, int](op, keyOf, nil)),
		"unsupported type":                   second(idemqueue.Processor(op, keyOf, func(context.Context, message) (chan int, error) { return make(chan int), nil })),
		"the operation is nil":               second(idemqueue.Handler(nil, keyOf, fn)),
		"idemqueue: the key function is nil": second(idemqueue.BatchHandler(op, nil, fn)),
		"operation is nil":                   second(idemqueue.BatchHandler(nil, keyOf, fn)),
		"use KeyPath":                        second(idemqueue.Handler(op, nil, fn)),
	} {
		if !errors.Is(err, idem.ErrConfig) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// A broker delivers a message twice.
func ExampleHandler() {
	store, _ := idemmemory.New()
	orders, _ := idem.NewOperation("orders", store, idem.AtLeastOnce)
	key, _ := idem.KeyPath[message]("ID")
	handle, err := idemqueue.Handler(orders, key, func(_ context.Context, m message) error {
		fmt.Println("charging", m.Cents)
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	for range 2 {
		fmt.Println(handle(context.Background(), message{ID: "m-1", Cents: 500}).Action)
	}
	// Output:
	// charging 500
	// Ack
	// Ack
}
