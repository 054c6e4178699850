package processes_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/conformance/faults"
	"github.com/idem-go/idem/driver"
)

// held is an operation that is never run twice by itself: it asks its ledger.
func held(d driver.Driver, ledger string, c *faults.Crasher) (*idem.Operation, error) {
	return idem.NewOperation("held", d, idem.AtLeastOnce, idem.WithLeaseTTL(lease), idem.WithWait(5*lease),
		idem.WithFailurePolicy(idem.PolicyHold), idem.WithReconcile(func(_ context.Context, key string) (idem.Outcome, error) {
			if err := effect(ledger+".asked", key, c); err != nil {
				return idem.Outcome{}, err
			}
			data, err := os.ReadFile(ledger)
			switch {
			case err == nil && strings.Contains(string(data), "charged "+key+"\n"):
				return idem.Succeeded("receipt of " + key), nil
			case err == nil || errors.Is(err, os.ErrNotExist):
				return idem.NotRun(), nil
			}
			return idem.Outcome{}, err
		}))
}

func pay(do task, c *faults.Crasher) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		c.Point("entered")
		return "receipt of " + do.Key, effect(do.Ledger, "charged "+do.Key, c)
	}
}

func charge(ctx context.Context, do task, d driver.Driver, c *faults.Crasher) error {
	op, err := held(d, do.Ledger, c)
	if err != nil {
		return err
	}
	got, err := idem.Execute(ctx, do.Key, pay(do, c), idem.On(op))
	if err == nil && got != "receipt of "+do.Key {
		err = fmt.Errorf("it got %q", got)
	}
	return err
}

// reconcile is charge, by a process that may die while it asks.
func reconcile(ctx context.Context, do task, d driver.Driver, c *faults.Crasher) error {
	return charge(ctx, do, d, c)
}

func TestHeldKeyIsAskedForAndChargedOnce(t *testing.T) { // CASES N1, N9
	t.Parallel()
	everyStore(t, func(t *testing.T, where place, d driver.Driver) {
		t.Helper()
		var wg sync.WaitGroup
		defer wg.Wait()
		for _, row := range []struct {
			point string
			asked int
		}{
			{"entered", 1},        // no effect: it runs after all
			{"charged", 1},        // the effect is there, its record is not
			{"after Complete", 0}, // the record is there
		} {
			do := task{Name: "charge", Where: where, Key: "died-" + strings.ReplaceAll(row.point, " ", "-"), Ledger: filepath.Join(t.TempDir(), "ledger")}
			if point := row.point; point == "charged" {
				do.run(t, 4) // before Claim, after Claim, entered, effect
			} else {
				do.diesAt(t, point)
			}
			do.Name = "reconcile"
			first, second := do.command(t), do.command(t)
			wg.Go(func() { // two processes meet it, and this one
				errs := make(chan error, 3)
				go func() { errs <- first.Run() }()
				go func() { errs <- second.Run() }()
				go func() { errs <- charge(t.Context(), do, d, nil) }()
				for range 3 {
					if err := <-errs; err != nil {
						t.Error(err)
					}
				}
				n, asked := counts(t, do.Ledger), counts(t, do.Ledger+".asked")
				if n["charged "+do.Key] != 1 || asked[do.Key] != row.asked {
					t.Errorf("%s: charged %d times, asked %d times, want 1 and %d", row.point, n["charged "+do.Key], asked[do.Key], row.asked)
				}
				t.Logf("died %s: the ledger has %v, asked %v", row.point, n, asked)
			})
		}
	})
}

func TestReconcilerThatDiesLeavesTheKeyToTheNext(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, where place, d driver.Driver) {
		t.Helper()
		do := task{Name: "charge", Where: where, Key: "pay-42", Ledger: filepath.Join(t.TempDir(), "ledger")}
		do.run(t, 4)
		plain, err := idem.NewOperation("held", d, idem.AtLeastOnce, idem.WithFailurePolicy(idem.PolicyHold), idem.WithWait(5*lease))
		must(t, err)
		if _, err := idem.Execute(t.Context(), do.Key, pay(do, nil), idem.On(plain)); !errors.Is(err, idem.ErrOutcomeUnknown) {
			t.Fatal("the key of the dead process:", err)
		}
		do.Name = "reconcile"
		points := do.run(t, 5) // before Claim, after Claim, and the same again over the uncertain record, and the question
		if last := points[len(points)-1]; last != "effect "+do.Key {
			t.Fatalf("%q", points)
		}
		must(t, charge(t.Context(), do, d, nil))
		n, asked := counts(t, do.Ledger), counts(t, do.Ledger+".asked")
		if n["charged "+do.Key] != 1 || asked[do.Key] != 2 {
			t.Error(n, asked)
		}
		t.Logf("the ledger has %v, asked %v", n, asked)
	})
}
