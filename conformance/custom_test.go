package conformance_test

import (
	"context"
	"testing"

	"github.com/idem-go/idem/conformance"
	"github.com/idem-go/idem/conformance/internal/tiny"
	"github.com/idem-go/idem/driver"
)

// TestCustomDriver is all that the driver of another package needs.
func TestCustomDriver(t *testing.T) {
	t.Parallel()
	store := func(ctx context.Context) *tiny.Store {
		d, _ := conformance.DriverFrom(ctx)
		return d.(*tiny.Store)
	}
	conformance.Run(t, conformance.Harness{
		Open:      func(testing.TB) driver.Driver { return tiny.New() },
		Effect:    func(ctx context.Context, id string) error { return store(ctx).Effect(ctx, id) },
		Effects:   func(ctx context.Context, id string) (int, error) { return store(ctx).Committed(id), nil },
		Interrupt: func(_ testing.TB, d driver.Driver) { d.(*tiny.Store).Cut() },
		Bubble:    true,
	})
}
