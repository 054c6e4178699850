package faults_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/conformance/faults"
	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
)

var ways = []faults.CallFault{{Before: true}, {After: true}, {Twice: true}, {Delay: 50 * time.Millisecond}}

// TestGuaranteesHoldUnderFaults runs callers on a few keys while calls of the
// store fail in every way, and counts the effects.
func TestGuaranteesHoldUnderFaults(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			for _, g := range []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce} {
				store, err := idemmemory.New()
				if err != nil {
					t.Fatal(err)
				}
				var runs [5]atomic.Int64
				var wg sync.WaitGroup
				for process := range 4 {
					d := leased{faults.Inject(store, faults.Seeded(seed*4+uint64(process), 0.3, ways...))}
					op, err := idem.NewOperation("payments", &d, g, idem.WithLeaseTTL(time.Second), idem.WithMaxLease(time.Minute))
					if err != nil {
						t.Fatal(err)
					}
					for i := range 25 {
						wg.Go(func() {
							key := i % len(runs)
							_, err := idem.Execute(t.Context(), strconv.Itoa(key), func(ctx context.Context) (int64, error) {
								time.Sleep(100 * time.Millisecond)
								return runs[key].Add(1), ctx.Err()
							}, idem.On(op), idem.WithWait(time.Duration(i)*100*time.Millisecond))
							if e, ok := errors.AsType[*idem.Error](err); err != nil && !ok && !errors.Is(err, context.Canceled) {
								t.Errorf("seed %d, %v: %v %v", seed, g, e, err)
							}
						})
					}
				}
				wg.Wait()
				for key := range runs {
					if n := runs[key].Load(); g == idem.AtMostOnce && n > 1 {
						t.Errorf("seed %d: a guard ran %d times", seed, n)
					}
				}
			}
		})
	}
}

// leased makes leases count as on a server.
type leased struct{ driver.Driver }

func (l *leased) Capabilities() driver.Capabilities {
	caps := l.Driver.Capabilities()
	caps.Ephemeral = false
	return caps
}

func TestSeedRepeatsItsFaults(t *testing.T) {
	t.Parallel()
	draw := func(seed uint64) (all []faults.CallFault) {
		plan := faults.Seeded(seed, 0.5, ways...)
		for range 100 {
			all = append(all, plan(faults.Call{}))
		}
		return all
	}
	if !slices.Equal(draw(1), draw(1)) || slices.Equal(draw(1), draw(2)) {
		t.Error("a seed does not repeat, or two are the same")
	}
}

func TestFaultMeetsTheCallThatItIsMeantFor(t *testing.T) {
	t.Parallel()
	store, err := idemmemory.New()
	if err != nil {
		t.Fatal(err)
	}
	d := faults.Inject(store, func(c faults.Call) faults.CallFault {
		return faults.CallFault{Before: c == faults.Call{Method: "Claim", N: 2}, After: c.Method == "Release"}
	})
	p := driver.ClaimParams{
		Key: driver.Key{Scope: "s", ID: "k"}, Token: driver.Token{1}, Lease: time.Minute, OnLapse: driver.TakeOver,
		Guarantee: driver.AtLeastOnce, Format: 1,
	}
	if _, err := d.Claim(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Claim(t.Context(), p); !errors.Is(err, faults.ErrInjected) {
		t.Fatal(err)
	}
	if _, err := d.Release(t.Context(), driver.ReleaseParams{Key: p.Key, Token: p.Token}); !errors.Is(err, faults.ErrInjected) {
		t.Fatal(err)
	}
	i, ok := driver.As[driver.Inspector](d)
	if !ok {
		t.Fatal("an ability is lost")
	}
	if res, err := i.Inspect(t.Context(), driver.InspectParams{Key: p.Key}); err != nil || res.Record.State != driver.StateReleased {
		t.Fatal("the lost reply's step did not take effect:", res, err)
	}
}
