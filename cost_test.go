package idem_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/idem-go/idem"
)

// What a call may allocate on memory, where nothing else costs anything.
const (
	maxFirstAllocs  = 8
	maxReplayAllocs = 4
	maxLocalAllocs  = 0 // a replay from the local cache
)

func TestCallsAllocateLittle(t *testing.T) { //nolint:paralleltest // it counts what the process allocates
	op := newOperation(t, idem.AtLeastOnce)
	want := receipt{Amount: 500, ID: "ch_1"}
	charge := func(context.Context) (receipt, error) { return want, nil }
	const runs = 1000
	keys := make([]string, runs+1)
	for i := range keys {
		keys[i] = "pay-" + strconv.Itoa(i)
	}
	n := 0
	count := func() float64 {
		return testing.AllocsPerRun(runs, func() {
			key := keys[n%len(keys)]
			n++
			if got, err := idem.Execute(t.Context(), key, charge, idem.On(op)); err != nil || got != want {
				t.Fatal(got, err)
			}
		})
	}
	cached := newOperation(t, idem.AtLeastOnce, idem.WithLocalCache(10))
	if local := testing.AllocsPerRun(runs, func() {
		if got, err := idem.Execute(t.Context(), "pay-42", charge, idem.On(cached)); err != nil || got != want {
			t.Fatal(got, err)
		}
	}); local > maxLocalAllocs {
		t.Errorf("a replay from the local cache allocates %v objects, at most %d are allowed", local, maxLocalAllocs)
	}
	if first := count(); first > maxFirstAllocs {
		t.Errorf("a first call allocates %v objects, at most %d are allowed", first, maxFirstAllocs)
	}
	if replay := count(); replay > maxReplayAllocs {
		t.Errorf("a replay allocates %v objects, at most %d are allowed", replay, maxReplayAllocs)
	}
}
