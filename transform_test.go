package idem_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/codec"
	"github.com/idem-go/idem/codec/aead"
	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
)

func ring(t *testing.T, write byte, read ...byte) codec.Transform {
	t.Helper()
	key := func(n byte) aead.Key {
		return aead.Key{ID: string('a' + rune(n)), Secret: bytes.Repeat([]byte{n}, aead.SecretSize)}
	}
	older := make([]aead.Key, 0, len(read))
	for _, n := range read {
		older = append(older, key(n))
	}
	r, err := aead.New(key(write), older...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// dump returns everything that the store keeps.
func dump(t *testing.T, store *idemmemory.Store) string {
	t.Helper()
	res, err := store.List(t.Context(), driver.ListParams{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, r := range res.Records {
		all.Write(r.Outcome)
		all.Write(r.Fingerprint)
	}
	return all.String()
}

func TestSealedOutcomesHideValuesFailuresAndSteps(t *testing.T) { // CASES C11
	t.Parallel()
	store := newMemory(t)
	op := operationOn(t, store, idem.AtLeastOnce, append(replayables(), idem.WithTransforms(ring(t, 1)))...)
	for range 2 {
		got, err := idem.Execute(t.Context(), "value", func(ctx context.Context) (string, error) {
			return idem.Step(ctx, "step", func(context.Context) (string, error) { return "card 4111", nil })
		}, idem.On(op))
		if err != nil || got != "card 4111" {
			t.Fatal(got, err)
		}
		err = idem.Do(t.Context(), "failure", func(context.Context) error {
			return errors.Join(errors.New("card 4111"), &declinedError{Code: "4111", Limit: 500})
		}, idem.On(op))
		if _, ok := errors.AsType[*declinedError](err); !ok || !strings.Contains(err.Error(), "card 4111") {
			t.Fatal(err)
		}
	}
	if all := dump(t, store); len(all) < 100 || strings.Contains(all, "4111") {
		t.Fatalf("%q", all)
	}
}

// unsealed cannot seal.
type unsealed struct{ codec.Transform }

func (unsealed) Name() string                                { return "unsealed" }
func (unsealed) Seal([]byte, []byte, []byte) ([]byte, error) { return nil, errors.New("no key") }

func TestResolutionThatCannotBeSealedSaysSoToTheObserver(t *testing.T) {
	t.Parallel()
	told := 0
	op := newOperation(t, idem.AtMostOnce, idem.WithTransforms(unsealed{}),
		idem.WithObserver(idem.Observer{Notice: func(ctx context.Context, n idem.Notice) {
			if _, ok := ctx.Deadline(); n.Kind == idem.NoticeNotRecorded && !ok { // the context can be used
				told++
			}
		}}))
	_ = idem.Do(t.Context(), "pay-42", func(context.Context) error { return context.Canceled }, idem.On(op))
	if err := op.Resolve(context.Background(), "pay-42", idem.Failed(errDeclined)); err != nil || told != 1 {
		t.Fatal(err, told)
	}
}

func TestSealedOutcomeIsReadAfterRotationAndNeverRunAgain(t *testing.T) { // CASES C11
	t.Parallel()
	store, pay := newMemory(t), new(charge)
	call := func(transforms ...codec.Transform) error {
		var opts []idem.OperationOption
		if len(transforms) > 0 {
			opts = append(opts, idem.WithTransforms(transforms...))
		}
		got, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(operationOn(t, store, idem.AtLeastOnce, opts...)))
		if err == nil && got.Amount != 1 {
			t.Error(got)
		}
		return err
	}
	for range 2 {
		if err := call(ring(t, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := call(ring(t, 2, 1)); err != nil {
		t.Fatal("after rotation:", err)
	}
	for name, err := range map[string]error{"a wrong key": call(ring(t, 2)), "no transform": call()} {
		if wantError(t, err, idem.ErrUnreadable); pay.runs.Load() != 1 {
			t.Error(name, err, pay.runs.Load())
		}
	}
}

func TestOutcomeMovedToAnotherKeyIsUnreadable(t *testing.T) { // CASES C11
	t.Parallel()
	store, pay := newMemory(t), new(charge)
	op := operationOn(t, store, idem.AtLeastOnce, idem.WithTransforms(ring(t, 1)))
	if _, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op)); err != nil {
		t.Fatal(err)
	}
	from, err := store.Inspect(t.Context(), driver.InspectParams{Key: driver.Key{Scope: "payments", ID: "pay-42"}})
	if err != nil {
		t.Fatal(err)
	}
	to := driver.ClaimParams{
		Key: driver.Key{Scope: "payments", ID: "pay-43"}, Token: driver.Token{1}, Lease: idem.DefaultLeaseTTL,
		OnLapse: driver.TakeOver, Guarantee: driver.AtLeastOnce, Format: 1,
	}
	if _, err := store.Claim(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Complete(t.Context(), driver.CompleteParams{
		Key: to.Key, Token: to.Token, To: driver.StateCompleted, Outcome: from.Record.Outcome,
		Retention: idem.DefaultRetention, Format: 1,
	}); err != nil {
		t.Fatal(err)
	}
	_, err = idem.Execute(t.Context(), "pay-43", pay.run, idem.On(op))
	if wantError(t, err, idem.ErrUnreadable); !errors.Is(err, aead.ErrOpen) || pay.runs.Load() != 1 {
		t.Fatal(err, pay.runs.Load())
	}
}

// broken fails to seal.
type broken struct{ codec.Transform }

func (broken) Name() string                                { return "broken" }
func (broken) Seal([]byte, []byte, []byte) ([]byte, error) { return nil, errCut }

func TestWhatCannotBeSealedIsNotStoredInTheClear(t *testing.T) {
	t.Parallel()
	store := newMemory(t)
	op := operationOn(t, store, idem.AtLeastOnce, idem.WithTransforms(broken{}))
	value := func(context.Context) (string, error) { return "card 4111", nil }
	if got, err := idem.Execute(t.Context(), "value", value, idem.On(op)); err != nil || got != "card 4111" {
		t.Fatal(got, err)
	}
	_, err := idem.Execute(t.Context(), "value", value, idem.On(op))
	wantError(t, err, idem.ErrResultOmitted)
	runs := 0
	for range 2 {
		_ = idem.Do(t.Context(), "failure", func(context.Context) error { runs++; return errors.New("card 4111") }, idem.On(op))
	}
	if all := dump(t, store); strings.Contains(all, "4111") || runs != 1 {
		t.Fatalf("%q, %d runs", all, runs)
	}
}

func TestWrongTransformsAndKeysAreRefused(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]idem.OperationOption{
		"none":      idem.WithTransforms(),
		"nil":       idem.WithTransforms(nil),
		"twice":     idem.WithTransforms(ring(t, 1), ring(t, 2)),
		"too many":  idem.WithTransforms(make([]codec.Transform, 9)...),
		"short key": idem.WithFingerprintKey([]byte("short")),
	} {
		if _, err := idem.NewOperation("p", newMemory(t), idem.AtLeastOnce, opt); !errors.Is(err, idem.ErrConfig) {
			t.Error(name, err)
		}
	}
}

func TestChangedFingerprintKeyComparesNothing(t *testing.T) {
	t.Parallel()
	store, pay := newMemory(t), new(charge)
	call := func(secret string, request int) error {
		op := operationOn(t, store, idem.AtLeastOnce, idem.WithFingerprintKey([]byte(secret)))
		_, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op), idem.WithFingerprint(request))
		return err
	}
	if err := call("0123456789abcdef", 1); err != nil {
		t.Fatal(err)
	}
	wantError(t, call("0123456789abcdef", 2), idem.ErrMismatch)
	if err := call("fedcba9876543210", 2); err != nil || pay.runs.Load() != 1 {
		t.Fatal(err, pay.runs.Load())
	}
}
