package idemwatermill_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/jmoiron/sqlx"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	idemsql "github.com/idem-go/idem/drivers/sql"
	"github.com/idem-go/idem/internal/testenv"
	"github.com/idem-go/idem/transports/idemqueue"
	"github.com/idem-go/idem/transports/idemwatermill"
)

// Watermill's Deduplicator by default has a goroutine that nobody can stop.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/ThreeDotsLabs/watermill/message/router/middleware.(*mapExpiringKeyRepository).cleanOutLoop"))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func memory(t *testing.T) driver.Driver {
	t.Helper()
	s, err := idemmemory.New()
	must(t, err)
	return s
}

func operation(t *testing.T, d driver.Driver, g idem.Guarantee, opts ...idem.OperationOption) *idem.Operation {
	t.Helper()
	op, err := idem.NewOperation("orders", d, g, opts...)
	must(t, err)
	return op
}

func orderMessage(key string) *message.Message {
	m := message.NewMessage("uuid-"+key, []byte("order "+key))
	if key != "" {
		m.Metadata.Set("key", key)
	}
	return m
}

var errBroken = errors.New("broken")

// handler is a protected handler whose end can be set, and how often it ran.
type handler struct {
	handle message.HandlerFunc
	runs   int
	end    func(m *message.Message) ([]*message.Message, error)
}

func protect(t *testing.T, op *idem.Operation, opts ...idem.WrapOption) *handler {
	t.Helper()
	once, err := idemwatermill.Middleware(op, idemwatermill.Metadata("key"), opts...)
	must(t, err)
	h := &handler{end: func(*message.Message) ([]*message.Message, error) { return nil, nil }}
	h.handle = once(func(m *message.Message) ([]*message.Message, error) { h.runs++; return h.end(m) })
	return h
}

func (h *handler) wants(t *testing.T, m *message.Message, failure error, runs int) []*message.Message {
	t.Helper()
	out, err := h.handle(m)
	if !errors.Is(err, failure) || (err == nil) != (failure == nil) || h.runs != runs {
		t.Errorf("%v after %d runs, want %v after %d", err, h.runs, failure, runs)
	}
	return out
}

func TestFailedMessageRunsAgainAndAFinishedOneDoesNot(t *testing.T) { // CASES Q1
	t.Parallel()
	h := protect(t, operation(t, memory(t), idem.AtLeastOnce))
	h.end = func(*message.Message) ([]*message.Message, error) { return nil, errBroken }
	h.wants(t, orderMessage("k"), errBroken, 1)
	h.wants(t, orderMessage("k"), errBroken, 2)
	h.end = func(*message.Message) ([]*message.Message, error) { return nil, nil }
	h.wants(t, orderMessage("k"), nil, 3)
	h.wants(t, orderMessage("k"), nil, 3)
}

func TestDuplicatePublishesTheSameMessages(t *testing.T) {
	t.Parallel()
	h := protect(t, operation(t, memory(t), idem.AtLeastOnce))
	h.end = func(m *message.Message) ([]*message.Message, error) {
		one, two := message.NewMessage("receipt-1", append([]byte("of "), m.Payload...)), message.NewMessage("empty", nil)
		one.Metadata.Set("key", "receipt")
		return []*message.Message{one, two}, nil
	}
	for range 2 {
		out := h.wants(t, orderMessage("k"), nil, 1)
		if len(out) != 2 || out[0].UUID != "receipt-1" || out[0].Metadata.Get("key") != "receipt" || string(out[0].Payload) != "of order k" ||
			out[1].UUID != "empty" || len(out[1].Payload) != 0 || !out[0].Ack() {
			t.Error(out)
		}
	}
}

func TestMessageOfNoUseIsADeadLetter(t *testing.T) { // CASES Q1
	t.Parallel()
	h := protect(t, operation(t, memory(t), idem.AtLeastOnce), idem.WithInputFingerprint("Payload"))
	h.wants(t, orderMessage("k"), nil, 1)
	h.wants(t, orderMessage("k"), nil, 1)
	other := orderMessage("k")
	other.Payload = []byte("another order")
	for reason, m := range map[error]*message.Message{idem.ErrMismatch: other, idem.ErrInvalidKey: orderMessage("")} {
		if _, err := h.handle(m); !errors.Is(err, reason) || !idemwatermill.IsDeadLetter(fmt.Errorf("wrapped: %w", err)) {
			t.Error(err)
		}
	}
	if idemwatermill.IsDeadLetter(errBroken) || idemwatermill.IsDeadLetter(nil) {
		t.Error("any error is a dead letter")
	}
}

func TestGuardsDuplicateIsAcknowledged(t *testing.T) { // CASES Q1
	t.Parallel()
	h := protect(t, operation(t, memory(t), idem.AtMostOnce))
	h.end = func(*message.Message) ([]*message.Message, error) { return nil, context.DeadlineExceeded }
	if _, err := h.handle(orderMessage("k")); !idemwatermill.IsDeadLetter(err) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	h.wants(t, orderMessage("k"), nil, 1)
}

func TestMessageInProgressIsWaitedForAndNeverAcknowledged(t *testing.T) { // CASES Q1
	t.Parallel()
	op := operation(t, memory(t), idem.AtLeastOnce)
	slow, patient, hasty := protect(t, op), protect(t, op), protect(t, op, idem.WithWait(0))
	entered, leave := make(chan struct{}), make(chan struct{})
	slow.end = func(*message.Message) ([]*message.Message, error) { close(entered); <-leave; return nil, nil }
	var wg sync.WaitGroup
	wg.Go(func() { slow.wants(t, orderMessage("k"), nil, 1) })
	<-entered
	hasty.wants(t, orderMessage("k"), idem.ErrInProgress, 0)
	close(leave)
	patient.wants(t, orderMessage("k"), nil, 0)
	wg.Wait()
}

func TestHandlerFindsItsTransactionInTheMessage(t *testing.T) {
	t.Parallel()
	db := sqlx.MustOpen("sqlite", idemsql.SQLiteDSN(testenv.Backend(t, testenv.SQLite)))
	t.Cleanup(func() { _ = db.Close() })
	store, err := idemsql.New(db)
	must(t, err)
	must(t, store.Migrate(t.Context()))
	db.MustExec("CREATE TABLE effects (id TEXT)")
	h := protect(t, operation(t, store, idem.ExactlyOnce))
	h.end = func(m *message.Message) ([]*message.Message, error) {
		tx, ok := idemsql.Tx(m.Context())
		if !ok {
			t.Fatal("no transaction")
		}
		if _, err := tx.ExecContext(m.Context(), "INSERT INTO effects (id) VALUES (?)", m.UUID); err != nil || h.runs == 1 {
			return nil, errors.Join(errBroken, err)
		}
		return nil, nil
	}
	m := orderMessage("k")
	h.wants(t, m, errBroken, 1)
	if _, left := idemsql.Tx(m.Context()); left {
		t.Error("the run's context stays in the message")
	}
	h.wants(t, m, nil, 2)
	h.wants(t, m, nil, 2)
	var n int
	must(t, db.Get(&n, "SELECT count(*) FROM effects"))
	if n != 1 {
		t.Error(n, "effects")
	}
}

func TestWrongMiddlewareIsRefused(t *testing.T) {
	t.Parallel()
	op := operation(t, memory(t), idem.AtLeastOnce)
	for says, err := range map[string]error{
		"the key function is nil": second(idemwatermill.Middleware(op, nil)),
		"the operation is nil":    second(idemwatermill.Middleware(nil, idemwatermill.UUID)),
		"was the unit":            second(idemwatermill.Middleware(op, idemwatermill.UUID, idem.WithWait(5))),
	} {
		if !errors.Is(err, idem.ErrConfig) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestMetadataWinsOverTheUUID(t *testing.T) { // CASES Q2
	t.Parallel()
	key := idemqueue.FirstKey(idemwatermill.Metadata("key"), idemwatermill.UUID)
	for want, m := range map[string]*message.Message{"k": orderMessage("k"), "uuid-": orderMessage("")} {
		if got, err := key(m); got != want || err != nil {
			t.Error(got, err)
		}
	}
}

// TestFailedMessagesAreNotLostAsTheDeduplicatorLosesThem has both middlewares on one stream, some of whose messages are
// published twice, while one handler in a hundred fails at first.
func TestFailedMessagesAreNotLostAsTheDeduplicatorLosesThem(t *testing.T) {
	t.Parallel()
	const n = 2000
	bus := gochannel.NewGoChannel(gochannel.Config{BlockPublishUntilSubscriberAck: true}, watermill.NopLogger{})
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	must(t, err)
	keys, err := middleware.NewMapExpiringKeyRepository(time.Hour)
	must(t, err)
	dedup := &middleware.Deduplicator{
		KeyFactory: func(m *message.Message) (string, error) { return m.UUID, nil }, Repository: keys, Timeout: time.Minute,
	}
	once, err := idemwatermill.Middleware(operation(t, memory(t), idem.AtLeastOnce), idemwatermill.UUID)
	must(t, err)
	with := consume(router, bus, "idem", once)
	beside := consume(router, bus, "deduplicator", dedup.Middleware)
	over := make(chan error, 1)
	go func() { over <- router.Run(context.Background()) }()
	<-router.Running()
	published := 0
	for i := range n {
		for range 1 + i%10/9 {
			published++
			must(t, bus.Publish("orders", message.NewMessage(strconv.Itoa(i), nil)))
		}
	}
	must(t, router.Close())
	must(t, bus.Close())
	must(t, <-over)

	lostWith, againWith := with.count(n)
	lostBeside, againBeside := beside.count(n)
	t.Logf("%d messages, %d deliveries, %d failed at first: idem lost %d and ran %d twice, the Deduplicator lost %d and ran %d twice",
		n, published, with.failed, lostWith, againWith, lostBeside, againBeside)
	if lostWith != 0 || againWith != 0 || with.failed != n/100 {
		t.Error("idem lost messages or ran them twice")
	}
	if lostBeside != beside.failed || beside.failed != n/100 {
		t.Error("the comparison says something that is not so")
	}
}

// effects are how often each message had its effect.
type effects struct {
	mu     sync.Mutex
	done   map[string]int
	tried  map[string]bool
	failed int
}

func consume(router *message.Router, bus *gochannel.GoChannel, name string, m message.HandlerMiddleware) *effects {
	e := &effects{done: map[string]int{}, tried: map[string]bool{}}
	router.AddConsumerHandler(name, "orders", bus, func(m *message.Message) error {
		e.mu.Lock()
		defer e.mu.Unlock()
		if i, _ := strconv.Atoi(m.UUID); i%100 == 50 && !e.tried[m.UUID] {
			e.tried[m.UUID] = true
			e.failed++
			return errBroken
		}
		e.done[m.UUID]++
		return nil
	}).AddMiddleware(m)
	return e
}

func (e *effects) count(n int) (lost, again int) {
	for i := range n {
		switch e.done[strconv.Itoa(i)] {
		case 0:
			lost++
		case 1:
		default:
			again++
		}
	}
	return lost, again
}
