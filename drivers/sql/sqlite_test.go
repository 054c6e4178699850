package idemsql_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/idem-go/idem/conformance"
	"github.com/idem-go/idem/driver"
)

// matrix says what the suite finds.
const matrix = "../../docs/conformance.md"

func TestConformance(t *testing.T) {
	t.Parallel()
	var bundles sync.Map // by driver
	open := func(b *bundle) driver.Driver {
		bundles.Store(b.Store, b)
		return b.Store
	}
	of := func(d driver.Driver) *bundle {
		b, _ := bundles.Load(d)
		return b.(*bundle)
	}
	conformance.Run(t, conformance.Harness{
		Name: "SQLite", Report: matrix,
		Open: func(t testing.TB) driver.Driver {
			t.Helper()
			return open(setup(t))
		},
		Peer: func(t testing.TB, d driver.Driver) driver.Driver {
			t.Helper()
			return open(setupAt(t, of(d).path))
		},
		Effect: func(ctx context.Context, id string) error { return effect(id)(ctx) },
		Effects: func(ctx context.Context, id string) (n int, err error) {
			d, ok := conformance.DriverFrom(ctx)
			if !ok {
				return 0, errors.New("the context carries no driver")
			}
			err = of(d).db.GetContext(ctx, &n, "SELECT count(*) FROM effects WHERE id = ?", id)
			return n, err
		},
	})
}
