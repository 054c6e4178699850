package processes_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/conformance/faults"
	"github.com/idem-go/idem/driver"
)

// lease is how long a dead process holds its key.
const lease = 5 * time.Second

func trips(d driver.Driver) (*idem.Operation, error) {
	return idem.NewOperation("trips", d, idem.AtLeastOnce, idem.WithLeaseTTL(lease), idem.WithWait(5*lease))
}

// trip has three steps, each with an effect.
func trip(ledger string, c *faults.Crasher) func(context.Context) (int, error) {
	return func(ctx context.Context) (sum int, err error) {
		for i, name := range []string{"flight", "hotel", "car"} {
			n, err := idem.Step(ctx, name, func(context.Context) (int, error) { return i + 1, effect(ledger, name, c) })
			if err != nil {
				return 0, err
			}
			sum += n
			c.Point("behind " + name)
		}
		return sum, nil
	}
}

func steps(ctx context.Context, do task, d driver.Driver, c *faults.Crasher) error {
	op, err := trips(d)
	if err != nil {
		return err
	}
	_, err = idem.Execute(ctx, do.Key, trip(do.Ledger, c), idem.On(op))
	return err
}

func TestRunAfterACrashSkipsTheFinishedSteps(t *testing.T) { // CASES N5
	t.Parallel()
	everyStore(t, func(t *testing.T, where place, d driver.Driver) {
		t.Helper()
		op, err := trips(d)
		must(t, err)
		var wg sync.WaitGroup
		defer wg.Wait()
		for point, want := range map[string]map[string]int{
			"behind flight": {"flight": 1, "hotel": 1, "car": 1},
			"behind hotel":  {"flight": 1, "hotel": 1, "car": 1},
			"effect hotel":  {"flight": 1, "hotel": 2, "car": 1}, // it was not recorded that it had run
			"behind car":    {"flight": 1, "hotel": 1, "car": 1},
		} {
			do := task{Name: "steps", Where: where, Key: "died " + point, Ledger: filepath.Join(t.TempDir(), "ledger")}
			do.diesAt(t, point)
			died := counts(t, do.Ledger)
			wg.Go(func() { // they all wait for a dead process's lease
				if err := resume(t.Context(), do, op, want); err != nil {
					t.Errorf("died %s: %v", point, err)
				}
				t.Logf("died %s: %v, in all, with a run of the next generation: %v", point, died, counts(t, do.Ledger))
			})
		}
	})
}

// resume runs the key of a dead process again, and once more in its next generation.
func resume(ctx context.Context, do task, op *idem.Operation, want map[string]int) error {
	for generation := range 2 {
		res, err := idem.ExecuteResult(ctx, do.Key, trip(do.Ledger, nil), idem.On(op))
		if err != nil || res.Value != 6 || res.Attempt != 2-generation {
			return fmt.Errorf("generation %d: %+v, %w", generation, res, err)
		}
		ran, err := readLedger(do.Ledger)
		if err != nil {
			return err
		}
		for name, n := range want {
			if ran[name] != n+generation {
				return fmt.Errorf("generation %d: %s ran %d times in all, want %d", generation, name, ran[name], n+generation)
			}
		}
		if err := op.Forget(ctx, do.Key); err != nil { // the next run is of a new generation
			return err
		}
	}
	return nil
}
