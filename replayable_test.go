package idem_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/codec"
	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
)

// declinedError is stored by its exported fields.
type declinedError struct {
	Code  string
	Limit int
}

func (e *declinedError) Error() string { return fmt.Sprintf("declined: %s over %d", e.Code, e.Limit) }

// stockError is stored by its own marshaler.
type stockError struct{ item string }

func (e stockError) Error() string                   { return e.item + " is out of stock" }
func (e stockError) MarshalBinary() ([]byte, error)  { return []byte(e.item), nil }
func (e *stockError) UnmarshalBinary(b []byte) error { e.item = string(b); return nil }

// moodyError does not come back with its text.
type moodyError struct {
	Shown  string
	hidden string
}

func (e moodyError) Error() string { return e.Shown + e.hidden }

var errFrozen = errors.New("the account is frozen")

func replayables() []idem.OperationOption {
	return []idem.OperationOption{
		idem.Replayable[*declinedError]("payment_declined"),
		idem.Replayable[stockError]("out_of_stock"),
		idem.Replayable[moodyError]("moody"),
		idem.ReplayableSentinel("frozen", errFrozen),
	}
}

// manyFailures is wrapped twice, joined, and wrapped again.
func manyFailures() error {
	declined := fmt.Errorf("pay: %w", fmt.Errorf("gateway: %w", &declinedError{"limit", 500}))
	return fmt.Errorf("order 7: %w", errors.Join(declined, fmt.Errorf("ship: %w", stockError{"book"}), errFrozen))
}

// hasManyFailures says what of them err lacks.
func hasManyFailures(err error) error {
	declined, ok := errors.AsType[*declinedError](err)
	if !ok || *declined != (declinedError{"limit", 500}) {
		return fmt.Errorf("no *declinedError in: %w", err)
	}
	if stock, ok := errors.AsType[stockError](err); !ok || stock.item != "book" {
		return fmt.Errorf("no stockError in: %w", err)
	}
	if !errors.Is(err, errFrozen) {
		return fmt.Errorf("no errFrozen in: %w", err)
	}
	if err.Error() != manyFailures().Error() {
		return fmt.Errorf("the text is: %w", err)
	}
	return nil
}

func TestTypedFailureReplaysAsWhatItWas(t *testing.T) { // CASES C9
	t.Parallel()
	for _, c := range []codec.Codec{codec.MessagePack(), codec.JSON()} {
		op := newOperation(t, idem.AtLeastOnce, append(replayables(), idem.WithCodec(c))...)
		runs := 0
		for range 2 {
			err := idem.Do(t.Context(), "pay-42", func(context.Context) error { runs++; return manyFailures() }, idem.On(op))
			if err := hasManyFailures(err); err != nil || runs != 1 {
				t.Fatal(c.Name(), err, runs)
			}
		}
		err := idem.Do(t.Context(), "pay-42", func(context.Context) error { return nil }, idem.On(op))
		var replayed *idem.ReplayedError
		if !errors.As(err, &replayed) || replayed.Name != "payment_declined" || replayed.Err == nil {
			t.Fatalf("%#v", err)
		}
	}
}

func TestFailureDegradesToItsText(t *testing.T) {
	t.Parallel()
	store := newMemory(t)
	first := operationOn(t, store, idem.AtLeastOnce, replayables()...)
	for key, failure := range map[string]error{
		"another text":     moodyError{"shown", "hidden"},
		"not named at all": errors.New("plain"),
	} {
		_ = idem.Do(t.Context(), key, func(context.Context) error { return failure }, idem.On(first))
		err := idem.Do(t.Context(), key, func(context.Context) error { return nil }, idem.On(first))
		if replayed, ok := errors.AsType[*idem.ReplayedError](err); !ok || replayed.Err != nil || err.Error() != failure.Error() {
			t.Errorf("%s: %#v", key, err)
		}
	}
	_ = idem.Do(t.Context(), "renamed", func(context.Context) error { return manyFailures() }, idem.On(first))
	renamed := operationOn(t, store, idem.AtLeastOnce, idem.Replayable[*declinedError]("declined_v2"))
	err := idem.Do(t.Context(), "renamed", func(context.Context) error { return nil }, idem.On(renamed))
	replayed, ok := errors.AsType[*idem.ReplayedError](err)
	if !ok || replayed.Err != nil || replayed.Name != "payment_declined" || err.Error() != manyFailures().Error() {
		t.Errorf("renamed: %#v", err)
	}
}

func TestNamedFailuresAreDomainFailures(t *testing.T) {
	t.Parallel()
	wrapsTimeout := fmt.Errorf("%w: %w", &declinedError{"slow", 1}, context.DeadlineExceeded)
	infrastructure := func(error) idem.FailureKind { return idem.KindInfrastructure }
	for name, row := range map[string]struct {
		opt  idem.OperationOption
		err  error
		want driver.State
	}{
		"although it wraps a timeout":     {nil, wrapsTimeout, driver.StateCompleted},
		"the classifier decides":          {idem.WithClassifier(infrastructure), wrapsTimeout, driver.StateReleased},
		"ReplayableOnly takes what it is": {idem.WithClassifier(idem.ReplayableOnly), wrapsTimeout, driver.StateCompleted},
		"and nothing else":                {idem.WithClassifier(idem.ReplayableOnly), errDeclined, driver.StateReleased},
	} {
		opts := replayables()
		if row.opt != nil {
			opts = append(opts, row.opt)
		}
		op := newOperation(t, idem.AtLeastOnce, opts...)
		_ = idem.Do(t.Context(), "pay-42", func(context.Context) error { return row.err }, idem.On(op))
		if rec, _, _ := op.Inspect(t.Context(), "pay-42"); rec.State != row.want {
			t.Errorf("%s: the record is %v, want %v", name, rec.State, row.want)
		}
	}
}

func TestWithoutErrorTextOnlyPayloadsAreStored(t *testing.T) { // CASES C10
	t.Parallel()
	store := newMemory(t)
	op := operationOn(t, store, idem.AtLeastOnce, append(replayables(), idem.WithoutErrorText())...)
	secret := fmt.Errorf("card 4111: %w", &declinedError{"limit", 500})
	_ = idem.Do(t.Context(), "named", func(context.Context) error { return secret }, idem.On(op))
	_ = idem.Do(t.Context(), "plain", func(context.Context) error { return errors.New("card 4111") }, idem.On(op))
	for _, key := range []string{"named", "plain"} {
		res, err := store.Inspect(t.Context(), driver.InspectParams{Key: driver.Key{Scope: "payments", ID: key}})
		if err != nil || !res.Found || strings.Contains(string(res.Record.Outcome), "4111") {
			t.Errorf("%s: %q, %v", key, res.Record.Outcome, err)
		}
	}
	err := idem.Do(t.Context(), "named", func(context.Context) error { return nil }, idem.On(op))
	if e, ok := errors.AsType[*declinedError](err); !ok || err.Error() != e.Error() {
		t.Errorf("%#v", err)
	}
	if err := idem.Do(t.Context(), "plain", func(context.Context) error { return nil }, idem.On(op)); err == nil || err.Error() != "idem: failed before" {
		t.Error(err)
	}
}

func TestTextWithInvalidUTF8IsStoredReplaced(t *testing.T) { // CASES C10
	t.Parallel()
	op := newOperation(t, idem.AtLeastOnce)
	for range 2 {
		_ = idem.Do(t.Context(), "k", func(context.Context) error { return errors.New("bad \xff byte") }, idem.On(op))
	}
	err := idem.Do(t.Context(), "k", func(context.Context) error { return nil }, idem.On(op))
	if err == nil || err.Error() != "bad \uFFFD byte" {
		t.Error(err)
	}
}

func TestWrongReplayablesAreRefused(t *testing.T) {
	t.Parallel()
	type secretive struct{ error }
	refused := func(says string, opts ...idem.OperationOption) {
		t.Helper()
		_, err := idem.NewOperation("payments", newMemory(t), idem.AtLeastOnce, opts...)
		if wantError(t, err, idem.ErrConfig); !strings.Contains(err.Error(), says) {
			t.Errorf("%v\n\tdoes not say %q", err, says)
		}
	}
	refused("blank", idem.Replayable[*declinedError](" "))
	refused("there already", idem.Replayable[*declinedError]("a"), idem.Replayable[stockError]("a"))
	refused("there already", idem.Replayable[stockError]("a"), idem.Replayable[stockError]("b"))
	refused("an interface", idem.Replayable[error]("a"))
	refused("an interface", idem.Replayable[interface {
		error
		json.Marshaler
	}]("a"))
	refused("cannot be stored", idem.Replayable[secretiveError]("a"))
	refused("none of its fields is exported", idem.Replayable[secretive]("a"))
	refused("is no sentinel", idem.ReplayableSentinel("a", nil))
	if _, err := idem.NewOperation("p", newLedger(t), idem.ExactlyOnce, replayables()...); err == nil {
		t.Error("an inbox took replayable errors")
	}
}

type secretiveError struct{ Cause error }

func (secretiveError) Error() string { return "secretive" }

func TestRenamedTypeIsReadUnderItsFormerName(t *testing.T) { // CASES C5
	t.Parallel()
	type oldReceipt struct{ Amount int }
	type newReceipt struct {
		Amount int
		Note   string
	}
	store := newMemory(t)
	before := operationOn(t, store, idem.AtLeastOnce, idem.WithTypeName[oldReceipt]("receipt.v1"))
	_, err := idem.Execute(t.Context(), "k", func(context.Context) (oldReceipt, error) { return oldReceipt{5}, nil }, idem.On(before))
	if err != nil {
		t.Fatal(err)
	}
	call := func(opts ...idem.OperationOption) (*newReceipt, error) {
		op := operationOn(t, store, idem.AtLeastOnce, opts...)
		return idem.Execute(t.Context(), "k", func(context.Context) (*newReceipt, error) {
			t.Error("it ran again")
			return nil, context.Canceled
		}, idem.On(op))
	}
	if got, err := call(idem.WithTypeName[newReceipt]("receipt.v2", "receipt.v1")); err != nil || got.Amount != 5 {
		t.Fatal(got, err)
	}
	_, err = call(idem.WithTypeName[newReceipt]("receipt.v2"))
	wantError(t, err, idem.ErrUnreadable)
	_, err = call()
	wantError(t, err, idem.ErrUnreadable)
	_, err = idem.NewOperation("p", store, idem.AtLeastOnce, idem.WithTypeName[newReceipt](""))
	wantError(t, err, idem.ErrConfig)
	_, err = idem.NewOperation("p", store, idem.AtLeastOnce, idem.WithTypeName[newReceipt]("a"), idem.WithTypeName[*newReceipt]("b"))
	wantError(t, err, idem.ErrConfig)
}

// A replay carries the typed error of the first answer.
func ExampleReplayable() {
	store, _ := idemmemory.New()
	payments, _ := idem.NewOperation("payments", store, idem.AtLeastOnce, idem.Replayable[*declinedError]("payment_declined"))
	for range 2 {
		err := idem.Do(context.Background(), "pay-42", func(context.Context) error {
			return fmt.Errorf("charging: %w", &declinedError{Code: "limit", Limit: 500})
		}, idem.On(payments), idem.WithFailureRetention(time.Hour))
		declined, ok := errors.AsType[*declinedError](err)
		fmt.Println(ok, declined.Code, "-", err)
	}
	// Output:
	// true limit - charging: declined: limit over 500
	// true limit - charging: declined: limit over 500
}
