package idemhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	"github.com/idem-go/idem/transports/idemhttp/internal/rules"
)

// conflicting rolls its first transaction back after the function has run, and
// lets somebody else have the key before it says so.
type conflicting struct {
	driver.Driver

	meanwhile func()
}

func (c *conflicting) Transact(ctx context.Context, p driver.TransactParams, fn driver.TransactFunc) (driver.TransactResult, error) {
	tx, _ := driver.As[driver.Transactor](c.Driver)
	if c.meanwhile == nil {
		return tx.Transact(ctx, p, fn)
	}
	_, err := tx.Transact(ctx, p, func(ctx context.Context, r driver.ClaimResult) (driver.CompleteParams, error) {
		_, err := fn(ctx, r)
		return driver.CompleteParams{}, errors.Join(err, errors.New("rolled back"))
	})
	c.meanwhile()
	c.meanwhile = nil
	return driver.TransactResult{}, errors.Join(driver.ErrConflict, err)
}

func TestResponseOfARunThatWasRolledBackIsNotSent(t *testing.T) {
	t.Parallel()
	sqlite := stores[1].open(t)
	on := func(d driver.Driver) rules.Setup {
		return rules.Setup{Guarantee: idem.ExactlyOnce, Open: func(*testing.T) driver.Driver { return d }}
	}
	answering := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
	}
	other := on(sqlite).Serve(t)
	other.Handler = answering("the other's")
	v := on(&conflicting{sqlite, func() { other.Send(rules.Request{Key: "k"}) }}).Serve(t)
	v.Handler = answering("rolled back")
	a := v.Send(rules.Request{Key: "k"})
	if a.Body != "the other's" || a.Header.Get("Idempotency-Replayed") != "true" || v.Runs.Load() != 1 {
		t.Errorf("%+v, %d runs", a, v.Runs.Load())
	}
}
