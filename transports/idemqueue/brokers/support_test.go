package brokers_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"

	"github.com/idem-go/idem"
	idemsql "github.com/idem-go/idem/drivers/sql"
	"github.com/idem-go/idem/transports/idemqueue"
)

// childEnv has the test binary be a consumer in a process of its own.
const childEnv = "IDEM_TEST_CONSUMER"

const (
	keyHeader = "idempotency-key"
	lease     = 2 * time.Second // of a key, and for how long a broker leaves a message with a consumer
)

// task says what a consumer consumes.
type task struct {
	Broker    string         `json:"broker"`
	Address   string         `json:"address"`
	Topic     string         `json:"topic"`
	DSN       string         `json:"dsn"`
	Table     string         `json:"table"`
	Guarantee idem.Guarantee `json:"guarantee"`
}

// broker is what the test needs of one.
type broker struct {
	// start returns the address of a broker with an empty topic.
	start func(t *testing.T, topic string) string
	// publish sends a message for each key.
	publish func(ctx context.Context, do task, keys []string) error
	// consume handles messages until the process dies.
	consume func(ctx context.Context, do task, c *consumer) error
	// left is how many messages are not settled; while there are consumers, it may leave out what they have.
	left func(ctx context.Context, do task, alone bool) (int, error)
	// pause is how long a consumer lives on average before one is killed.
	pause time.Duration
}

var brokers = map[string]broker{"nats": natsBroker, "rabbitmq": rabbitBroker, "redis streams": streamsBroker, "kafka": kafkaBroker}

func TestMain(m *testing.M) {
	spec := os.Getenv(childEnv)
	if spec == "" {
		os.Exit(m.Run())
	}
	var do task
	err := json.Unmarshal([]byte(spec), &do)
	if err == nil {
		err = do.consume()
	}
	fmt.Fprintln(os.Stderr, do.Broker, err)
	os.Exit(1)
}

// consumer is the end of a broker's messages: one effect each.
type consumer struct {
	op    *idem.Operation
	db    *sqlx.DB
	table string
}

func (do task) consume() error {
	db, err := sqlx.Open("postgres", do.DSN)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(16)
	store, err := idemsql.New(db, idemsql.WithTable(do.Table), idemsql.WithSweep(0))
	if err != nil {
		return err
	}
	var opts []idem.OperationOption
	if do.Guarantee != idem.ExactlyOnce {
		opts = append(opts, idem.WithLeaseTTL(lease))
	}
	op, err := idem.NewOperation("orders", store, do.Guarantee, opts...)
	if err != nil {
		return err
	}
	return brokers[do.Broker].consume(context.Background(), do, &consumer{op, db, do.Table + "_effects"})
}

var errNow = errors.New("not now")

// effect writes down that the message's effect happened; one time in a hundred it fails before.
func (c *consumer) effect(ctx context.Context) error {
	if mathrand.IntN(100) == 0 {
		return errNow
	}
	a, _ := idem.FromContext(ctx)
	run := c.db.ExecContext
	if tx, ok := idemsql.Tx(ctx); ok {
		run = tx.ExecContext
	}
	_, err := run(ctx, "INSERT INTO "+c.table+" (id) VALUES ($1)", a.Key())
	return err
}

// forgotten reports, one time in a hundred, that a decision is to be kept from the broker.
func forgotten() bool { return mathrand.IntN(100) == 0 }

// handler returns c as a handler of a broker's messages.
func handler[M any](c *consumer, key idem.KeyFunc[M]) (func(context.Context, M) idemqueue.Decision, error) {
	return idemqueue.Handler(c.op, key, func(ctx context.Context, _ M) error { return c.effect(ctx) })
}

// each runs f for what next returns, a few at a time.
func each[M any](handle func(M), from <-chan M) {
	slots := make(chan struct{}, 8)
	for m := range from {
		slots <- struct{}{}
		go func() { defer func() { <-slots }(); handle(m) }()
	}
}

// process is a consumer that runs.
type process struct {
	cmd  *exec.Cmd
	over chan struct{}
}

func (do task) start(t *testing.T) *process {
	t.Helper()
	spec, err := json.Marshal(do)
	must(t, err)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(spec), "GORACE=atexit_sleep_ms=10")
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	p := &process{cmd, make(chan struct{})}
	go func() { _ = cmd.Wait(); close(p.over) }()
	t.Cleanup(p.kill)
	return p
}

// kill kills the process as by kill -9.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.over
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newName() string { return "idembrokers_" + strings.ToLower(rand.Text()[:10]) }

// shuffled returns the keys of n messages, one in ten twice, in any order.
func shuffled(n int) (keys []string) {
	for i := range n {
		keys = append(keys, strconv.Itoa(i))
		if i%10 == 0 {
			keys = append(keys, strconv.Itoa(i))
		}
	}
	mathrand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys
}
