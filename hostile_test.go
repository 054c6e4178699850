package idem

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/idem-go/idem/codec"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	"github.com/idem-go/idem/internal/envelope"
)

// replayer is an operation to which stored outcomes are replayed.
func replayer(tb testing.TB) *Operation {
	tb.Helper()
	store, err := idemmemory.New()
	if err != nil {
		tb.Fatal(err)
	}
	op, err := NewOperation("payments", store, AtLeastOnce, Replayable[*declined]("d"), ReplayableSentinel("c", context.Canceled))
	if err != nil {
		tb.Fatal(err)
	}
	return op
}

func TestHostileOutcomesAllocateInProportion(t *testing.T) { //nolint:paralleltest // it measures; CASES C1
	op := replayer(t)
	failure := func(text string, payload string) []byte {
		return append(envelope.AppendHeader(nil, envelope.Failure, "msgpack", "d", text), payload...)
	}
	value := func(codec, payload string) []byte {
		return append(envelope.AppendHeader(nil, envelope.Value, codec, "github.com/idem-go/idem.parcelValue", ""), payload...)
	}
	for _, plain := range [][]byte{
		{1, 0, 1, 0xff, 0xff, 0xff, 0xff, 0x0f}, {1, 8, 0xff, 0xff, 0xff, 0xff, 0x0f}, {1, 0, 2, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
		{1, 8, 0, 0, 0, 0, 0, 0, 0, 0}, failure(strings.Repeat("x", 100_000), ""), failure("", strings.Repeat("\x01c\x00", 50_000)),
		failure("", strings.Repeat("\x01d\x01\xc0", 50_000)), failure("", strings.Repeat("\x01d\x01\x80", 50_000)), failure("", "\x01d\xff\xff\xff\xff\x0f"),
		value("msgpack", "\x81\xa5Items\xdd\xff\xff\xff\xff"), value("msgpack", "\x81\xa5Items\xdc\xff\xff"+strings.Repeat("\xa0", 65535)),
		value("msgpack", strings.Repeat("\x81\xa4Next", 10_000)), value("json", `{"Items":[`+strings.Repeat(`"",`, 50_000)+`""]}`), value("raw", "x"),
	} {
		for _, stored := range [][]byte{plain, envelope.Close(bytes.Clone(plain))} {
			var before, after runtime.MemStats
			_ = replayOf(t, op, stored)
			runtime.ReadMemStats(&before)
			_ = replayOf(t, op, stored)
			runtime.ReadMemStats(&after)
			if got, limit := after.TotalAlloc-before.TotalAlloc, 64*uint64(len(stored))+64<<10; got > limit {
				t.Errorf("%d bytes (% .20x …) allocate %d", len(stored), stored, got)
			}
		}
	}
}

func TestErrorsThatCannotBeMadeAgainAreLeftOut(t *testing.T) {
	t.Parallel()
	op := replayer(t)
	nothing := "\x01d\x01\xc0" // a nil *declined, which has no text
	err := op.rebuild(codec.MessagePack(), []byte(nothing+"\x01c\x00"))
	if _, ok := errors.AsType[*declined](err); ok || !errors.Is(err, context.Canceled) {
		t.Errorf("%#v", err)
	}
}
