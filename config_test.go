package idem_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/codec"
	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
)

// claims returns a driver that declares what caps says and must not be asked.
type declares struct {
	driver.Driver
	caps driver.Capabilities
}

func (d *declares) Capabilities() driver.Capabilities { return d.caps }

func TestOperationThatWasNotBuiltIsRefused(t *testing.T) {
	t.Parallel()
	op := new(idem.Operation)
	fn := func(context.Context, int) (int, error) { return 0, nil }
	_, _, inspect := op.Inspect(t.Context(), "pay-42")
	_, registry := idem.NewRegistry(op)
	_, wrap := idem.Wrap(op, func(int) (string, error) { return "", nil }, fn)
	for _, err := range []error{
		idem.Do(t.Context(), "pay-42", func(context.Context) error { return nil }, idem.On(op)),
		op.Forget(t.Context(), "pay-42"), inspect, registry, wrap,
	} {
		wantError(t, err, idem.ErrConfig)
	}
}

// wrapper wraps nothing.
type wrapper struct{ driver.Driver }

func (wrapper) Unwrap() driver.Driver { return nil }

// holder can be compared by its type, but not with what it holds.
type holder struct {
	driver.Driver
	any
}

func TestDriversThatCannotBeComparedAreRefused(t *testing.T) {
	t.Parallel()
	if _, err := idem.NewOperation("payments", wrapper{newMemory(t)}, idem.AtLeastOnce); err != nil {
		t.Error(err)
	}
	_, err := idem.NewOperation("payments", holder{newMemory(t), []int{}}, idem.AtLeastOnce)
	wantError(t, err, idem.ErrConfig)
}

func TestOptionsOfACallAreCheckedTogether(t *testing.T) {
	t.Parallel()
	op := newOperation(t, idem.AtLeastOnce)
	ttl, longest := idem.WithLeaseTTL(2*time.Hour), idem.WithMaxLease(3*time.Hour)
	for _, opts := range [][]idem.ExecuteOption{{ttl, longest}, {longest, ttl}} {
		if err := idem.Do(t.Context(), "pay-42", func(context.Context) error { return nil }, append(opts, idem.On(op))...); err != nil {
			t.Error(err)
		}
	}
	err := idem.Do(t.Context(), "pay-42", func(context.Context) error { return nil }, idem.On(op), ttl)
	wantError(t, err, idem.ErrConfig)
}

func TestWrongOperationIsRefusedWithWhatToWriteInstead(t *testing.T) {
	t.Parallel()
	memory := newMemory(t)
	caps := memory.Capabilities()
	with := func(change func(*driver.Capabilities)) driver.Driver {
		c := caps
		change(&c)
		return &declares{caps: c}
	}
	rows := []struct {
		alias idem.Alias
		d     driver.Driver
		g     idem.Guarantee
		opt   idem.OperationOption
		says  string
	}{
		{" ", memory, idem.AtLeastOnce, nil, "name the operation"},
		{"p", nil, idem.AtLeastOnce, nil, "open one"},
		{"p", (*idemmemory.Store)(nil), idem.AtLeastOnce, nil, "open one"},
		{"p", memory, idem.ExactlyOnce, nil, "the driver memory does not uphold ExactlyOnce"},
		{"p", memory, 0, nil, "is no guarantee"},
		{"p", with(func(c *driver.Capabilities) { c.Contract = 2 }), idem.AtLeastOnce, nil, "version 2 of the contract"},
		{"p", with(func(c *driver.Capabilities) { c.Guarantees = driver.GuaranteeSet(3) }), idem.ExactlyOnce, nil, "no driver.Transactor"},
		{"p", with(func(c *driver.Capabilities) { c.Guarantees = driver.GuaranteeSet(1) }), idem.AtLeastOnce, idem.WithFailurePolicy(idem.PolicyHold), "PolicyHold needs"},
		{"p", with(func(c *driver.Capabilities) { c.Features = 0 }), idem.AtLeastOnce, idem.WithTombstone(time.Hour), "WithTombstone needs"},
		{"p", memory, idem.AtLeastOnce, idem.WithLeaseTTL(30), "was the unit forgotten (30*time.Second)?"},
		{"p", memory, idem.AtLeastOnce, idem.WithLeaseTTL(0), "WithLeaseTTL(0s): give a duration of at least 1ms"},
		{"p", memory, idem.AtLeastOnce, idem.WithLeaseTTL(-time.Second), "WithLeaseTTL(-1s)"},
		{"p", memory, idem.AtLeastOnce, idem.WithLeaseTTL(idem.RetainForever), "a lease must end"},
		{"p", memory, idem.AtLeastOnce, idem.WithLeaseTTL(2 * time.Hour), "longer than WithMaxLease(1h0m0s)"},
		{"p", memory, idem.AtLeastOnce, idem.WithRetention(0), "WithRetention(0s)"},
		{"p", memory, idem.AtLeastOnce, idem.WithFailureRetention(-1), "WithFailureRetention"},
		{"p", memory, idem.AtLeastOnce, idem.WithWait(-1), "WithWait"},
		{"p", memory, idem.AtLeastOnce, idem.WithTombstone(0), "WithTombstone(0s)"},
		{"p", memory, idem.AtLeastOnce, idem.WithMaxResultSize(0), "above 0"},
		{"p", memory, idem.AtLeastOnce, idem.WithKeySpace(""), "leave the option out"},
		{"p", memory, idem.AtLeastOnce, idem.WithFailurePolicy(9), "FailurePolicy(9) is no policy"},
		{"p", memory, idem.AtMostOnce, idem.WithFailurePolicy(idem.PolicyHold), "is for AtLeastOnce"},
		{"p", memory, idem.AtMostOnce, idem.WithFailOpen(), "is for AtLeastOnce"},
		{"p", memory, idem.AtLeastOnce, idem.WithoutOutcomes(), "is for AtMostOnce"},
		{"p", memory, idem.AtLeastOnce, idem.WithClassifier(nil), "WithClassifier: nil"},
		{"p", memory, idem.AtLeastOnce, idem.WithCodec(nil), "WithCodec: nil"},
		{"p", memory, idem.AtLeastOnce, idem.WithLogger(nil), "WithLogger: nil"},
		{"p", memory, idem.AtLeastOnce, idem.OperationOption(nil), ""},
	}
	for _, row := range rows {
		var opts []idem.OperationOption
		if row.opt != nil {
			opts = append(opts, row.opt)
		} else if row.says == "" {
			opts, row.says = append(opts, nil), "nil is no option"
		}
		_, err := idem.NewOperation(row.alias, row.d, row.g, opts...)
		wantError(t, err, idem.ErrConfig)
		if !strings.Contains(err.Error(), row.says) {
			t.Errorf("%v\n\tdoes not say %q", err, row.says)
		}
	}
}

func TestWrongCallIsRefusedBeforeAnythingRan(t *testing.T) {
	t.Parallel()
	store := newSpy(t)
	op := operationOn(t, store, idem.AtLeastOnce)
	rows := []struct {
		key    string
		opts   []idem.ExecuteOption
		reason error
		says   string
	}{
		{"", nil, idem.ErrInvalidKey, "the key is blank"},
		{" \t", nil, idem.ErrInvalidKey, "the key is blank"},
		{"k", []idem.ExecuteOption{idem.On(nil)}, idem.ErrConfig, "not nil"},
		{"k", []idem.ExecuteOption{idem.On(op)}, idem.ErrConfig, "On takes one operation"},
		{"k", []idem.ExecuteOption{idem.Alias("payments")}, idem.ErrConfig, "both On and an alias"},
		{"k", []idem.ExecuteOption{idem.Alias("")}, idem.ErrConfig, "not empty"},
		{"k", []idem.ExecuteOption{idem.WithScope("")}, idem.ErrConfig, "the scope is empty"},
		{"k", []idem.ExecuteOption{idem.IfFence(1)}, idem.ErrConfig, "leave it out"},
		{"k", []idem.ExecuteOption{idem.WithLeaseTTL(30)}, idem.ErrConfig, "was the unit forgotten"},
		{"k", []idem.ExecuteOption{idem.WithMaxLease(time.Second)}, idem.ErrConfig, "longer than WithMaxLease"},
		{"k", []idem.ExecuteOption{idem.WithFingerprint(make(chan int))}, idem.ErrConfig, "use WithFingerprintBytes"},
		{"k", []idem.ExecuteOption{idem.WithFingerprint(receipt{}, "amuont")}, idem.ErrConfig, "none of the fields"},
		{"k", []idem.ExecuteOption{idem.WithFingerprint(json.RawMessage(`{"a":1,"a":2}`), "a")}, idem.ErrConfig, "occurs twice"}, // CASES K3
		{"k", []idem.ExecuteOption{nil}, idem.ErrConfig, "nil is no option"},
	}
	for _, row := range rows {
		pay := new(charge)
		_, err := idem.Execute(t.Context(), row.key, pay.run, append(row.opts, idem.On(op))...)
		wantError(t, err, row.reason)
		if !strings.Contains(err.Error(), row.says) {
			t.Errorf("%v\n\tdoes not say %q", err, row.says)
		}
		if pay.runs.Load() != 0 || store.claimed.Load() != 0 {
			t.Fatalf("%v: but the store was asked", err)
		}
	}
	_, err := idem.Execute[int](t.Context(), "k", nil, idem.On(op))
	wantError(t, err, idem.ErrConfig)
	wantError(t, idem.Do(t.Context(), "k", nil, idem.On(op)), idem.ErrConfig)
}

func TestTypesThatCannotBeStoredAreRefusedBeforeTheFunction(t *testing.T) { // CASES C4
	t.Parallel()
	op := newOperation(t, idem.AtLeastOnce)
	refuses[chan int](t, op)
	refuses[func()](t, op)
	refuses[io.Reader](t, op)
	refuses[error](t, op)
	refuses[struct{ C chan int }](t, op)
	refuses[[]func()](t, op)
	refuses[map[string]*struct{ R io.Reader }](t, op)
	refuses[int](t, op, idem.WithCodec(codec.Raw()))
}

func refuses[T any](t *testing.T, op *idem.Operation, opts ...idem.ExecuteOption) {
	t.Helper()
	for range 2 { // the second answer comes from what the first learnt
		_, err := idem.Execute(t.Context(), "k", func(context.Context) (v T, err error) {
			t.Error("it ran")
			return v, nil
		}, append(opts, idem.On(op))...)
		wantError(t, err, idem.ErrConfig)
	}
}

func TestRegistryFindsOperationsByAlias(t *testing.T) {
	t.Parallel()
	store := newMemory(t)
	build := func(alias idem.Alias, opts ...idem.OperationOption) *idem.Operation {
		op, err := idem.NewOperation(alias, store, idem.AtLeastOnce, opts...)
		if err != nil {
			t.Fatal(err)
		}
		return op
	}
	orders, mails := build("orders"), build("mails")
	call := func(r *idem.Registry, opts ...idem.ExecuteOption) (idem.Alias, error) {
		ctx := t.Context()
		if r != nil {
			ctx = idem.ContextWithRegistry(ctx, r)
		}
		res, err := idem.ExecuteResult(ctx, "k", new(charge).run, opts...)
		return res.Operation, err
	}
	full, err := idem.NewRegistry(orders, mails)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := call(full); err != nil || got != "orders" {
		t.Error("no alias:", got, err)
	}
	if got, err := call(full, idem.Alias("mails")); err != nil || got != "mails" {
		t.Error("alias:", got, err)
	}
	if got, err := call(full, idem.On(mails)); err != nil || got != "mails" {
		t.Error("On:", got, err)
	}
	without, err := idem.NewRegistry(nil, mails)
	if err != nil {
		t.Fatal(err)
	}
	for says, err := range map[string]error{
		`only "mails", "orders"`:            second(call(full, idem.Alias("letters"))),
		"has no default operation":          second(call(without)),
		"idem.ContextWithRegistry":          second(call(nil)),
		"rename one":                        second(idem.NewRegistry(orders, build("orders", idem.WithKeySpace("o")))),
		"give one of them WithKeySpace":     second(idem.NewRegistry(orders, build("other", idem.WithKeySpace("orders")))),
		"an operation of the registry is n": second(idem.NewRegistry(nil, nil)),
	} {
		wantError(t, err, idem.ErrConfig)
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%v\n\tdoes not say %q", err, says)
		}
	}
	if err := full.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestScopesKeepEqualKeysApart(t *testing.T) { // CASES S19, K5, K6
	t.Parallel()
	store, pay := newMemory(t), new(charge)
	op := operationOn(t, store, idem.AtLeastOnce)
	scopes := [][]idem.ExecuteOption{
		nil,
		{idem.WithScope("a")},
		{idem.WithScope("b")},
		{idem.WithScope("a"), idem.WithScope("b")},
		{idem.WithScope("ab")},
		{idem.WithScope("b"), idem.WithScope("a")},
		{idem.WithScope("1:a,")},
	}
	for i, scope := range scopes {
		for range 2 {
			got, err := idem.Execute(t.Context(), "k", pay.run, append(scope, idem.On(op))...)
			if err != nil || got.Amount != i+1 {
				t.Fatalf("scope %d: %v, %v", i, got, err)
			}
		}
	}
}
