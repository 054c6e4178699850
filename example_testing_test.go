package idem_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
)

// faulty is a store on which one step fails: three lines reach what a test
// wants to see, and the rest is a real store.
type faulty struct {
	driver.Driver

	claim, renew error
}

func (b *faulty) Claim(ctx context.Context, p driver.ClaimParams) (driver.ClaimResult, error) {
	if b.claim != nil {
		return driver.ClaimResult{}, b.claim
	}
	return b.Driver.Claim(ctx, p)
}

func (b *faulty) Renew(ctx context.Context, p driver.RenewParams) (driver.RenewResult, error) {
	if b.renew != nil {
		return driver.RenewResult{}, b.renew
	}
	return b.Driver.Renew(ctx, p)
}

// Capabilities says that owners can die without their records, as on a server:
// then leases are renewed.
func (b *faulty) Capabilities() driver.Capabilities {
	caps := b.Driver.Capabilities()
	caps.Ephemeral = false
	return caps
}

// How a test reaches what rarely happens: a key in progress, an unknown
// outcome, a store that is down. What needs time, as a lost lease and an
// expired outcome, is reached in a bubble of package testing/synctest; see the test beside this example.
func Example_testing() {
	store, _ := idemmemory.New()
	ctx := context.Background()
	nothing := func(context.Context) error { return nil }

	payments, _ := idem.NewOperation("payments", store, idem.AtLeastOnce)
	_ = idem.Do(ctx, "pay-1", func(context.Context) error { // a duplicate comes in while it runs
		fmt.Println(idem.Do(context.Background(), "pay-1", nothing, idem.On(payments)))
		return nil
	}, idem.On(payments))

	guarded, _ := idem.NewOperation("guarded", store, idem.AtMostOnce)
	_ = idem.Do(ctx, "pay-2", func(context.Context) error { return context.DeadlineExceeded }, idem.On(guarded))
	fmt.Println(idem.Do(ctx, "pay-2", nothing, idem.On(guarded)))

	down := &faulty{Driver: store, claim: driver.ErrBusy}
	orders, _ := idem.NewOperation("orders", down, idem.AtLeastOnce)
	fmt.Println(idem.Do(ctx, "order-3", nothing, idem.On(orders)))
	// Output:
	// idem: payments "pay-1": in progress elsewhere, retry in 30s
	// idem: guarded "pay-2": outcome unknown: it may have run; settle it with Operation.Resolve
	// idem: orders "order-3": store failed: idem driver: the backend is busy
}

func TestWhatNeedsTimeIsReachedInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, err := idemmemory.New()
		if err != nil {
			t.Fatal(err)
		}
		nothing := func(context.Context) error { return nil }

		cut := &faulty{Driver: store, renew: errors.New("connection refused")}
		payments, err := idem.NewOperation("payments", cut, idem.AtLeastOnce, idem.WithLeaseTTL(10*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		err = idem.Do(t.Context(), "pay-1", func(ctx context.Context) error {
			<-ctx.Done() // 9 s later, of which none is waited for
			return context.Cause(ctx)
		}, idem.On(payments))
		if !errors.Is(err, idem.ErrLeaseLost) {
			t.Error("a lost lease:", err)
		}

		expiring, err := idem.NewOperation("expiring", store, idem.AtLeastOnce, idem.WithRetention(time.Hour), idem.WithTombstone(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if err := idem.Do(t.Context(), "pay-2", nothing, idem.On(expiring)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(90 * time.Minute)
		if err := idem.Do(t.Context(), "pay-2", nothing, idem.On(expiring)); !errors.Is(err, idem.ErrKeyExpired) {
			t.Error("an expired outcome:", err)
		}
	})
}
