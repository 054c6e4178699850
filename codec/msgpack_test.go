package codec_test

import (
	"bytes"
	"math/big"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/idem-go/idem/codec"
)

// wide is a type of which a few bytes could announce very much.
type wide struct{ Row [64]int64 }

type zoned struct {
	At time.Time
	P  *time.Time
}

// mapper reads itself as a map.
type mapper struct{ m map[string]string }

func (m *mapper) EncodeMsgpack(e *msgpack.Encoder) error { return e.Encode(m.m) }
func (m *mapper) DecodeMsgpack(d *msgpack.Decoder) error { return d.Decode(&m.m) }

// targets returns what hostile bytes are decoded into.
func targets() []any {
	return []any{
		new([]wide), new([]*wide), new([]string), new([][]byte), new([]float64), new(map[string]string), new(map[int]wide),
		new(string), new([]byte), new(wide), new(big.Int), new(time.Time), new(struct{ A []wide }),
		new([]map[string]wide), new(zoned), new([]time.Time), new(node), new(mapper),
	}
}

type node struct {
	Next *node
	More []*node
	Map  map[string]*node
}

// looped writes itself by way of itself.
type looped struct{ next *looped }

func (l *looped) EncodeMsgpack(e *msgpack.Encoder) error {
	return e.Encode([]*looped{l.next})
}

func TestCyclesAndDeepNestingAreRefused(t *testing.T) {
	t.Parallel()
	direct, listed, mapped, own := &node{}, &node{More: make([]*node, 2)}, &node{Map: map[string]*node{}}, &looped{}
	direct.Next, listed.More[1], mapped.Map["x"], own.next = direct, listed, mapped, own
	type pointer *pointer
	var self pointer
	self = &self
	for _, v := range []any{direct, listed, mapped, own, self} {
		if _, err := codec.MessagePack().Append([]byte("head"), v); err == nil {
			t.Errorf("a %T that holds itself was encoded", v)
		}
	}
	var got node
	if err := codec.MessagePack().Decode(bytes.Repeat([]byte{0x91}, 16<<20), &got); err == nil {
		t.Error("16 million nested lists were read")
	}
	long := &node{}
	for range 900 {
		long = &node{Next: long}
	}
	if _, err := codec.MessagePack().Append(nil, long); err != nil {
		t.Error(err)
	}
}
