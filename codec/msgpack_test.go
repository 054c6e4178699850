package codec_test

import (
	"bytes"
	"encoding/binary"
	"math/big"
	"runtime"
	"testing"
	"time"

	"github.com/idem-go/idem/codec"
)

// wide is a type of which a few bytes could announce very much.
type wide struct{ Row [64]int64 }

// targets returns what hostile bytes are decoded into.
func targets() []any {
	return []any{
		new([]wide), new([]*wide), new([]string), new([][]byte), new([]float64), new(map[string]string), new(map[int]wide),
		new(string), new([]byte), new(wide), new(big.Int), new(time.Time), new(struct{ A []wide }),
	}
}

func TestHostileLengthsAllocateLittle(t *testing.T) { //nolint:paralleltest // it measures; CASES C1
	for _, form := range []byte{0xc6, 0xc9, 0xdb, 0xdd, 0xdf} {
		for _, n := range []uint32{1 << 24, 1<<32 - 1} {
			data := binary.BigEndian.AppendUint32([]byte{form}, n)
			for _, inside := range [][]byte{data, append([]byte{0x91}, data...), append([]byte{0x81, 0xa1, 'A'}, data...)} {
				for _, target := range targets() {
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					err := codec.MessagePack().Decode(inside, target)
					runtime.ReadMemStats(&after)
					if got := after.TotalAlloc - before.TotalAlloc; err == nil || got > 64<<10 {
						t.Fatalf("% x into a %T: %d bytes allocated, %v", inside, target, got, err)
					}
				}
			}
		}
	}
}

type node struct {
	Next  *node
	Other any
}

func TestCyclesAndDeepNestingAreRefused(t *testing.T) {
	t.Parallel()
	direct, hidden := &node{}, &node{}
	direct.Next, hidden.Other = direct, hidden
	list := []any{nil}
	list[0] = list
	padded := map[string]any{"padding": bytes.Repeat([]byte{1}, 5000)}
	padded["again"] = padded
	for _, v := range []any{direct, hidden, &list, &padded} {
		if _, err := codec.MessagePack().Append([]byte("head"), v); err == nil {
			t.Errorf("a %T that holds itself was encoded", v)
		}
	}
	var got []any
	if err := codec.MessagePack().Decode(bytes.Repeat([]byte{0x91}, 16<<20), &got); err == nil {
		t.Error("16 million nested lists were read")
	}
	long := &node{}
	for range 500 {
		long = &node{Next: long}
	}
	if _, err := codec.MessagePack().Append(nil, long); err != nil {
		t.Error(err)
	}
}

func FuzzMessagePackDecode(f *testing.F) {
	for _, v := range []any{wide{}, []string{"a", ""}, map[string]*int{"b": nil}, time.Unix(1, 2), int64(-1 << 40)} {
		data, err := codec.MessagePack().Append(nil, &v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(_ *testing.T, data []byte) {
		for _, target := range targets() {
			_ = codec.MessagePack().Decode(data, target)
		}
	})
}
