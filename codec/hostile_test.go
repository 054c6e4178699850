package codec_test

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"

	"github.com/idem-go/idem/codec"
)

// allowed is what hostile bytes of a length may make a codec allocate.
func allowed(n int) uint64 { return 64*uint64(n) + 64<<10 }

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// hostileMessagePack are values that announce more than they contain, or that are much larger in
// memory than they are long.
func hostileMessagePack() [][]byte {
	var all [][]byte
	lengths := func(n uint32) [][]byte {
		four := binary.BigEndian.AppendUint32(nil, n)
		return [][]byte{{byte(n)}, four[2:], four}
	}
	for _, n := range []uint32{1<<16 - 1, 1<<32 - 1} {
		for form := 0xc0; form <= 0xdf; form++ {
			for _, length := range lengths(n) {
				all = append(all, append([]byte{byte(form)}, length...))
			}
		}
		for _, head := range []string{"\xd4\x05", "\xd5\x05", "\xd6\x05", "\xd7\x05", "\xd8\x05", "\xc7\x05\x05", "\xc8\x00\x05\x05", "\xd8\xff"} {
			wide := append(append([]byte(head), 0xdf), append(lengths(n)[2], make([]byte, 16)...)...)
			all = append(all, wide, append([]byte(head), 0xde, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0))
		}
	}
	inside := make([][]byte, 0, 3*len(all))
	for _, data := range all {
		inside = append(inside, data, append([]byte{0x91}, data...), append([]byte{0x81, 0xa1, 'A'}, data...), append([]byte{0x81, 0xa1, 'a'}, data...))
	}
	for _, elem := range []string{"\x80", "\xc0", "\x90", "\xa0", "\xc4\x01x", "\x81\xa1A\x90", "\xc7\x11\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00Z"} {
		for _, n := range []int{100, 60_000} {
			list := append([]byte{0xdc}, binary.BigEndian.AppendUint16(nil, uint16(n))...)
			inside = append(inside, append(list, strings.Repeat(elem, n)...))
			table := append([]byte{0xde}, binary.BigEndian.AppendUint16(nil, uint16(n))...)
			inside = append(inside, append(table, strings.Repeat("\xa0"+elem, n)...), append(table, strings.Repeat("\x07"+elem, n)...))
		}
	}
	return inside
}

func TestHostileMessagePackAllocatesInProportion(t *testing.T) { //nolint:paralleltest // it measures; CASES C1
	for _, target := range targets() { // what is made once for each type
		_ = codec.MessagePack().Decode([]byte{0xc0}, target)
	}
	for _, data := range hostileMessagePack() {
		for _, target := range targets() {
			got := allocated(func() { _ = codec.MessagePack().Decode(data, target) })
			if got > allowed(len(data)) {
				t.Fatalf("%d bytes (% .20x …) into a %T: %d allocated", len(data), data, target, got)
			}
		}
	}
}

func TestHostileJSONAllocatesInProportion(t *testing.T) { //nolint:paralleltest // it measures; CASES C1
	docs := []string{
		strings.Repeat("[", 9000), strings.Repeat("[", 100_000), strings.Repeat(`{"Next":`, 9000), strings.Repeat(`{"More":[`, 4000),
		"[" + strings.Repeat(`"",`, 50_000) + `""]`, "[" + strings.Repeat("null,", 50_000) + "null]",
		"{" + strings.Repeat(`"":"",`, 50_000) + `"":""}`, `"` + strings.Repeat(`\u0000`, 50_000) + `"`,
	}
	for _, doc := range docs {
		for _, target := range []any{
			new([]string), new([][]byte), new(map[string]string), new(string), new([]byte), new(node), new([]*node), new([]float64),
		} {
			got := allocated(func() { _ = codec.JSON().Decode([]byte(doc), target) })
			if got > allowed(len(doc)) {
				t.Fatalf("%d bytes (%.20s …) into a %T: %d allocated", len(doc), doc, target, got)
			}
		}
	}
}

func TestValueThatIsAllButEmptyIsRefusedWhenItIsWritten(t *testing.T) {
	t.Parallel()
	type sparse struct {
		A [1000]int `msgpack:",omitempty"`
	}
	few, many := make([]sparse, 2), make([]sparse, 1000)
	if got := roundTrip(t, codec.MessagePack(), few); len(got) != 2 {
		t.Error(len(got))
	}
	if _, err := codec.MessagePack().Append(nil, &many); err == nil {
		t.Error("a value was written that could not be read")
	}
}

func FuzzMessagePackDecode(f *testing.F) {
	for i, data := range hostileMessagePack() {
		if len(data) < 50 && i%50 == 0 {
			f.Add(data)
		}
	}
	for _, target := range targets() {
		if data, err := codec.MessagePack().Append(nil, target); err == nil {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, target := range targets() {
			if err := codec.MessagePack().Decode(data, target); err != nil {
				continue
			}
			// What was read can be written, and is read as the same again.
			again, err := codec.MessagePack().Append(nil, target)
			if err != nil {
				t.Fatalf("%T: %+v: %v", target, target, err)
			}
			if err := codec.MessagePack().Decode(again, target); err != nil {
				t.Fatalf("%T: % x: %v", target, again, err)
			}
		}
	})
}

func FuzzJSONDecode(f *testing.F) {
	for _, doc := range []string{`{"Next":{"More":[null]}}`, `["a","\ud800"]`, `{"a":1e400}`, `"2026-11-30T12:00:00+00:60"`, `{"Row":[1,2]}`} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, target := range targets() {
			if codec.JSON().Decode(data, target) != nil {
				continue
			}
			if again, err := codec.JSON().Append(nil, target); err == nil && codec.JSON().Decode(again, target) != nil {
				t.Fatalf("%T: %s is not read again", target, bytes.ToValidUTF8(again, nil))
			}
		}
	})
}
