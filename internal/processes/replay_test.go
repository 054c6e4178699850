package processes_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/conformance/faults"
	"github.com/idem-go/idem/driver"
)

type declinedError struct {
	Code  string
	Limit int
}

func (e *declinedError) Error() string { return fmt.Sprintf("declined: %s over %d", e.Code, e.Limit) }

type stockError struct{ item string }

func (e stockError) Error() string                   { return e.item + " is out of stock" }
func (e stockError) MarshalBinary() ([]byte, error)  { return []byte(e.item), nil }
func (e *stockError) UnmarshalBinary(b []byte) error { e.item = string(b); return nil }

var errFrozen = errors.New("the account is frozen")

func failing(d driver.Driver) (*idem.Operation, error) {
	return idem.NewOperation("failing", d, idem.AtLeastOnce, idem.Replayable[*declinedError]("declined"),
		idem.Replayable[stockError]("out_of_stock"), idem.ReplayableSentinel("frozen", errFrozen))
}

// failure is wrapped twice, joined, and wrapped again.
func failure() error {
	declined := fmt.Errorf("pay: %w", fmt.Errorf("gateway: %w", &declinedError{"limit", 500}))
	return fmt.Errorf("order 7: %w", errors.Join(declined, fmt.Errorf("ship: %w", stockError{"book"}), errFrozen))
}

func hold(err error) error {
	declined, ok := errors.AsType[*declinedError](err)
	stock, ok2 := errors.AsType[stockError](err)
	if !ok || !ok2 || *declined != (declinedError{"limit", 500}) || stock.item != "book" || !errors.Is(err, errFrozen) {
		return fmt.Errorf("something is missing in: %w", err)
	}
	if err.Error() != failure().Error() {
		return fmt.Errorf("the text is: %w", err)
	}
	return nil
}

// fail ends with a failure, which is the first answer.
func fail(ctx context.Context, do task, d driver.Driver, _ *faults.Crasher) error {
	op, err := failing(d)
	if err != nil {
		return err
	}
	err = idem.Do(ctx, do.Key, func(context.Context) error { return errors.Join(effect(do.Ledger, "ran", nil), failure()) }, idem.On(op))
	if _, ok := errors.AsType[*idem.ReplayedError](err); ok {
		return errors.New("it was a replay")
	}
	return hold(err)
}

// replay has the failure of another process.
func replay(ctx context.Context, do task, d driver.Driver, _ *faults.Crasher) error {
	op, err := failing(d)
	if err != nil {
		return err
	}
	err = idem.Do(ctx, do.Key, func(context.Context) error { return effect(do.Ledger, "ran", nil) }, idem.On(op))
	if _, ok := errors.AsType[*idem.ReplayedError](err); !ok {
		return fmt.Errorf("no replay: %w", err)
	}
	return hold(err)
}

func TestTypedFailureReplaysInAnotherProcess(t *testing.T) { // CASES C9
	t.Parallel()
	everyStore(t, func(t *testing.T, where place, _ driver.Driver) {
		t.Helper()
		do := task{Name: "fail", Where: where, Key: "pay-42", Ledger: filepath.Join(t.TempDir(), "ledger")}
		do.run(t, 0)
		do.Name = "replay"
		do.run(t, 0)
		if n := counts(t, do.Ledger); n["ran"] != 1 {
			t.Error(n)
		}
	})
}
