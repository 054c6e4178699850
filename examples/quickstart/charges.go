package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/jmoiron/sqlx"

	"github.com/idem-go/idem"
	idemsql "github.com/idem-go/idem/drivers/sql"
)

var errDeclined = errors.New("card declined")

// charges makes the effects, and can count them afterwards. Under ExactlyOnce a charge
// is a row that commits together with the record of its key; under the other
// guarantees it is a line in a file, like a call of a payment provider: nothing
// takes it back.
type charges struct {
	db     *sqlx.DB
	ledger *os.File // nil: rows
	crash  int      // the charge in which to die; 0: none
	made   int
}

func openCharges(ctx context.Context, db *sqlx.DB, file string, g idem.Guarantee, crash int) (*charges, error) {
	c := &charges{db: db, crash: crash}
	if g == idem.ExactlyOnce {
		_, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS charges (order_id TEXT NOT NULL, cents INTEGER NOT NULL)")
		return c, err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600) //nolint:gosec // the user names the folder
	c.ledger = f
	return c, err
}

// charge is the function that must not be repeated carelessly.
func (c *charges) charge(ctx context.Context, o order) (receipt, error) {
	if o.Item == "poison" {
		return receipt{}, errDeclined
	}
	if err := c.effect(ctx, o); err != nil {
		return receipt{}, err
	}
	if c.made++; c.made == c.crash {
		// The worst moment: the effect is there, its record is not.
		return receipt{}, die()
	}
	return receipt{Charge: "ch-" + o.ID, Cents: o.Cents}, nil
}

// die kills the process as kill -9 does: nothing is cleaned up.
func die() error {
	p, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	if err := p.Kill(); err != nil {
		return err
	}
	select {}
}

func (c *charges) effect(ctx context.Context, o order) error {
	if c.ledger != nil {
		_, err := fmt.Fprintln(c.ledger, o.ID, o.Cents)
		return err
	}
	tx, ok := idemsql.Tx(ctx)
	if !ok {
		return errors.New("no transaction")
	}
	_, err := tx.ExecContext(ctx, "INSERT INTO charges (order_id, cents) VALUES (?, ?)", o.ID, o.Cents)
	return err
}

// report says how often each order was really charged.
func (c *charges) report(ctx context.Context, w io.Writer, orders []order) error {
	times, err := c.count(ctx)
	if err != nil {
		return err
	}
	once, never := 0, 0
	seen := map[string]bool{}
	for _, o := range orders {
		if seen[o.ID] {
			continue
		}
		seen[o.ID] = true
		switch n := times[o.ID]; n {
		case 0:
			never++
		case 1:
			once++
		default:
			if _, err := fmt.Fprintf(w, "%s was charged %d times\n", o.ID, n); err != nil {
				return err
			}
		}
	}
	_, err = fmt.Fprintf(w, "of %d different orders: %d charged once, %d never, %d more than once\n",
		len(seen), once, never, len(seen)-once-never)
	return err
}

func (c *charges) count(ctx context.Context) (map[string]int, error) {
	times := map[string]int{}
	if c.ledger == nil {
		var ids []string
		err := c.db.SelectContext(ctx, &ids, "SELECT order_id FROM charges")
		for _, id := range ids {
			times[id]++
		}
		return times, err
	}
	if _, err := c.ledger.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	for lines := bufio.NewScanner(c.ledger); lines.Scan(); {
		var id string
		var cents int
		if _, err := fmt.Sscan(lines.Text(), &id, &cents); err != nil {
			return nil, err
		}
		times[id]++
	}
	return times, nil
}
