package idem_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	idemmemory "github.com/idem-go/idem/drivers/memory"
)

type command struct {
	OrderID string `json:"orderId"`
	Cents   int
}

type envelope struct {
	Command *command `json:"command"`
	Meta    map[string]any
	Total   *big.Int
	At      time.Time
	Paid    bool
	Rate    float64
	Seq     uint16
	Any     any
	hidden  string
}

func TestWrappedFunctionRunsOncePerKey(t *testing.T) {
	t.Parallel()
	op := newOperation(t, idem.AtLeastOnce)
	key, err := idem.KeyPath[command]("orderId")
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	pay, err := idem.Wrap(op, key, func(_ context.Context, c command) (receipt, error) {
		runs++
		return receipt{Amount: c.Cents}, nil
	}, idem.WithInputFingerprint("Cents"), idem.WithRetention(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got, err := pay(t.Context(), command{"o-1", 500}); err != nil || got.Amount != 500 || runs != 1 {
			t.Fatal(got, err, runs)
		}
	}
	_, err = pay(t.Context(), command{"o-1", 900})
	wantError(t, err, idem.ErrMismatch)
	_, err = pay(t.Context(), command{"", 900})
	wantError(t, err, idem.ErrInvalidKey)
}

func TestWrapRefusesWhatIsWrongWhenItWraps(t *testing.T) {
	t.Parallel()
	op := newOperation(t, idem.AtLeastOnce)
	key := idem.KeyFunc[command](func(c command) (string, error) { return c.OrderID, nil })
	fn := func(context.Context, command) (int, error) { return 0, nil }
	for says, err := range map[string]error{
		"the operation is nil":  second(idem.Wrap(nil, key, fn)),
		"use KeyPath":           second(idem.Wrap(op, nil, fn)),
		"the function is nil":   second(idem.Wrap[command, int](op, key, nil)),
		"leave On and":          second(idem.Wrap(op, key, fn, idem.On(op))),
		"leave On and the":      second(idem.Wrap(op, key, fn, idem.Alias("payments"))),
		"was the unit forgot":   second(idem.Wrap(op, key, fn, idem.WithLeaseTTL(30))),
		"nil is no option":      second(idem.Wrap(op, key, fn, nil)),
		"chan int cannot be st": second(idem.Wrap(op, key, func(context.Context, command) (chan int, error) { return make(chan int), nil })),
	} {
		if wantError(t, err, idem.ErrConfig); !strings.Contains(err.Error(), says) {
			t.Errorf("%v\n\tdoes not say %q", err, says)
		}
	}
}

func TestInputWithoutAKeyDoesNotRun(t *testing.T) {
	t.Parallel()
	cause := errors.New("no order")
	pay, err := idem.Wrap(newOperation(t, idem.AtLeastOnce),
		func(command) (string, error) { return "", cause },
		func(context.Context, command) (int, error) { t.Error("it ran"); return 0, nil })
	if err != nil {
		t.Fatal(err)
	}
	_, err = pay(t.Context(), command{})
	if wantError(t, err, idem.ErrInvalidKey); !errors.Is(err, cause) {
		t.Fatal(err)
	}
}

func TestKeyPathFindsTheKey(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	in := envelope{
		Command: &command{OrderID: "o-1", Cents: -5},
		Meta:    map[string]any{"id": "m-1", "n": 7, "inner": map[string]any{"id": "deep"}, "cmd": &command{OrderID: "o-2"}},
		Total:   big.NewInt(900), At: at, Seq: 3, Any: command{OrderID: "o-3"}, hidden: "x",
	}
	for path, want := range map[string]string{
		"command.orderId": "o-1", "Command.OrderID": "o-1", "Command.Cents": "-5", "Meta.id": "m-1", "Meta.n": "7",
		"Meta.inner.id": "deep", "Meta.cmd.orderId": "o-2", "Total": "900", "At": "2026-11-30T00:00:00Z", "Seq": "3",
		"Any.orderId": "o-3",
	} {
		key, err := idem.KeyPath[*envelope](path)
		if err != nil {
			t.Error(err)
			continue
		}
		if got, err := key(&in); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", path, got, err, want)
		}
	}
}

func TestImpossibleKeyPathIsRefusedWhenItIsBuilt(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"", "nope", "command", "command.nope", "command.orderId.more", "Paid", "Rate", "hidden", "Seq.x", "command..orderId",
	} {
		_, err := idem.KeyPath[envelope](path)
		wantError(t, err, idem.ErrConfig)
	}
}

func TestInputThatLacksTheKeyIsAnError(t *testing.T) {
	t.Parallel()
	for path, in := range map[string]envelope{
		"command.orderId": {},
		"Meta.id":         {Meta: map[string]any{}},
		"Meta.x":          {Meta: map[string]any{"x": 1.5}},
		"Meta.y":          {Meta: map[string]any{"y": nil}},
		"Meta.z":          {Meta: map[string]any{"z": true}},
		"Meta.a.b":        {Meta: map[string]any{"a": "text"}},
		"Total":           {},
		"Any.orderId":     {},
	} {
		key, err := idem.KeyPath[envelope](path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := key(in); err == nil {
			t.Errorf("%s: %q", path, got)
		}
	}
}

func TestJoinedKeysStayApart(t *testing.T) { // CASES K5
	t.Parallel()
	seen := map[string][]string{}
	for _, parts := range [][]string{
		{"a:b", "c"}, {"a", "b:c"}, {"a", "b", "c"}, {"abc"}, {"a,1:b"}, {"a", "b"}, {"b", "a"}, {"1:a,"}, {"\x00"}, {" "},
	} {
		key := idem.JoinKey(parts...)
		if other, ok := seen[key]; ok || key == "" {
			t.Errorf("%q and %q are both %q", parts, other, key)
		}
		seen[key] = parts
	}
	if idem.JoinKey() != "" || idem.JoinKey("a", "") != "" {
		t.Error("an empty part does not make the key empty")
	}
}

func ExampleWrap() {
	type order struct {
		ID    string
		Cents int
	}
	store, _ := idemmemory.New()
	payments, _ := idem.NewOperation("payments", store, idem.AtLeastOnce)
	key, err := idem.KeyPath[order]("ID")
	if err != nil {
		fmt.Println(err)
	}
	pay, err := idem.Wrap(payments, key, func(_ context.Context, o order) (string, error) {
		fmt.Println("charging", o.Cents)
		return "paid " + o.ID, nil
	}, idem.WithInputFingerprint())
	if err != nil {
		fmt.Println(err)
	}
	for range 2 {
		fmt.Println(pay(context.Background(), order{ID: "o-1", Cents: 500}))
	}
	// Output:
	// charging 500
	// paid o-1 <nil>
	// paid o-1 <nil>
}
