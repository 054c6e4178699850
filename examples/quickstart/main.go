// Command quickstart takes orders from a file and charges each of them, as
// safe against duplicates and crashes as the guarantee that it is told to use.
//
//	go run ./examples/quickstart                              # 200 orders, some of them sent twice
//	go run ./examples/quickstart                              # everything is replayed
//	go run ./examples/quickstart -reset -crash-after 100      # killed in the middle of a charge
//	go run ./examples/quickstart                              # what the guarantee makes of that
//	go run ./examples/quickstart -guarantee exactly-once ...  # or at-most-once
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/idem-go/idem"
	idemsql "github.com/idem-go/idem/drivers/sql"
)

// lease is short, so that the run after a crash need not wait long for the
// key of the run that died.
const lease = 2 * time.Second

var guarantees = map[string]idem.Guarantee{
	"at-least-once": idem.AtLeastOnce,
	"at-most-once":  idem.AtMostOnce,
	"exactly-once":  idem.ExactlyOnce,
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	file := flag.String("orders", "", "a JSON-lines `file` of orders (default: the 200 that come with the program)")
	dir := flag.String("dir", "quickstart-data", "the `folder` for the database and the ledger")
	name := flag.String("guarantee", "at-least-once", "at-least-once, at-most-once or exactly-once")
	crash := flag.Int("crash-after", 0, "kill the process in the `n`-th charge, after its effect and before its record")
	reset := flag.Bool("reset", false, "begin with an empty database and ledger")
	flag.Parse()
	guarantee, ok := guarantees[*name]
	if !ok {
		return fmt.Errorf("-guarantee %s: use at-least-once, at-most-once or exactly-once", *name)
	}
	orders, err := readOrders(*file)
	if err != nil {
		return err
	}
	base := filepath.Join(*dir, *name)
	if err := prepare(base, *reset); err != nil {
		return err
	}
	db, err := sqlx.Open("sqlite", idemsql.SQLiteDSN(base+".db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	charges, err := openCharges(ctx, db, base+".ledger", guarantee, *crash)
	if err != nil {
		return err
	}
	op, err := newOperation(ctx, db, guarantee)
	if err != nil {
		return err
	}
	return takeAll(ctx, op, charges, orders)
}

// newOperation builds the operation that protects the charges.
func newOperation(ctx context.Context, db *sqlx.DB, guarantee idem.Guarantee) (*idem.Operation, error) {
	store, err := idemsql.New(db)
	if err != nil {
		return nil, err
	}
	if err := store.Migrate(ctx); err != nil {
		return nil, err
	}
	opts := []idem.OperationOption{idem.WithWait(2 * lease)}
	if guarantee != idem.ExactlyOnce { // which has no lease: its transaction ends with the process
		opts = append(opts, idem.WithLeaseTTL(lease))
	}
	op, err := idem.NewOperation("charges", store, guarantee, opts...)
	if err != nil {
		return nil, err
	}
	return op, op.Verify(ctx)
}

// prepare makes the folder and, on reset, removes what an earlier run left.
func prepare(base string, reset bool) error {
	if reset {
		for _, suffix := range []string{".db", ".db-wal", ".db-shm", ".ledger"} {
			if err := os.Remove(base + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	return os.MkdirAll(filepath.Dir(base), 0o750)
}

// takeAll takes the orders in turn and prints a line for each.
func takeAll(ctx context.Context, op *idem.Operation, c *charges, orders []order) error {
	p := newProgress(os.Stdout, len(orders))
	for _, o := range orders {
		p.begin(o)
		res, err := idem.ExecuteResult(ctx, o.ID, func(ctx context.Context) (receipt, error) {
			return c.charge(ctx, o)
		}, idem.On(op), idem.WithFingerprint(o))
		p.end(o, res, err)
	}
	p.summary()
	return c.report(ctx, os.Stdout, orders)
}
