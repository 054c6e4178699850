package codec_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem/codec"
)

type (
	inside struct {
		X int
		C chan int
	}
	Public struct{ X int }
	secret struct{ amount int } //nolint:unused // that it cannot be stored is the case
	base   struct{ ID string }
	deeper struct {
		base

		Note string
	}
	id int
)

// writeOnly cannot be read, mixed is read otherwise than it is written.
type (
	writeOnly struct{ X int }
	mixed     struct{ X int }
	byPointer struct{ X int }
	Stamp     struct{ at time.Time }
	ownTime   struct {
		time.Time

		Note string
	}
)

func (writeOnly) MarshalText() ([]byte, error) { return []byte("x"), nil }

func (mixed) MarshalJSON() ([]byte, error)           { return []byte("1"), nil }
func (*mixed) UnmarshalText([]byte) error            { return nil }
func (mixed) MarshalBinary() ([]byte, error)         { return nil, nil }
func (b *byPointer) MarshalText() ([]byte, error)    { return json.Marshal(b.X) }
func (b *byPointer) UnmarshalText(text []byte) error { return json.Unmarshal(text, &b.X) }
func (s Stamp) MarshalText() ([]byte, error)         { return s.at.MarshalText() }
func (s *Stamp) UnmarshalText(text []byte) error     { return s.at.UnmarshalText(text) }
func (o ownTime) MarshalText() ([]byte, error)       { return []byte(o.Note), nil }
func (o *ownTime) UnmarshalText(text []byte) error   { o.Note = string(text); return nil }
func (o ownTime) MarshalJSON() ([]byte, error)       { return json.Marshal(o.Note) }
func (o *ownTime) UnmarshalJSON(b []byte) error      { return json.Unmarshal(b, &o.Note) }
func (o ownTime) MarshalBinary() ([]byte, error)     { return []byte(o.Note), nil }
func (o *ownTime) UnmarshalBinary(b []byte) error    { o.Note = string(b); return nil }

func TestTypesThatWouldNotComeBackAreRefused(t *testing.T) { // CASES C3, C4
	t.Parallel()
	integer, tag := reflect.TypeFor[int](), reflect.StructTag(`json:"x" msgpack:"x"`)
	twice := reflect.Zero(reflect.StructOf([]reflect.StructField{
		{Name: "A", Type: integer, Tag: tag}, {Name: "B", Type: integer, Tag: tag},
	})).Interface()
	for _, row := range []struct {
		v             any
		msgpack, json bool
	}{
		{struct{ A any }{}, false, false},
		{map[string]any{}, false, false},
		{[]any{}, false, false},
		{struct{ inside }{}, false, false},
		{secret{}, false, false},
		{[]secret{}, false, false},
		{complex(1, 2), false, false},
		{uintptr(1), false, false},
		{map[int]string{}, true, true},
		{map[Public]int{}, true, false},
		{map[float64]int{}, true, false},
		{map[*int]int{}, false, false},
		{map[[1]struct{ P *int }]int{}, false, false},
		{map[time.Time]int{}, true, true},
		{map[netip.Addr]time.Duration{}, true, true},
		{new(*int), false, false},
		{new([]int), true, true}, // the top pointer is Append's own
		{struct{ P *[]int }{}, false, false},
		{struct{ P *map[string]int }{}, false, false},
		{struct{ P *net.IP }{}, true, true},
		{struct{ P *Public }{}, true, true},
		{struct{ *Public }{}, true, true},
		{struct{ *inside }{}, false, false},
		{struct{ *base }{}, false, false},
		{struct{ deeper }{}, true, true},
		{struct {
			base

			ID int
		}{}, true, false}, // JSON leaves the inner one out
		{struct {
			*Public

			X int
		}{}, true, false},
		{twice, false, false},
		{struct {
			A int
			C chan int `json:"-" msgpack:"-"` // is not stored
		}{}, true, true},
		{struct {
			id

			A int
		}{}, true, true},
		{struct{ time.Time }{}, true, true},
		{struct {
			time.Time

			Note string
		}{}, false, false}, // the time writes itself and nothing else
		{ownTime{}, true, true},
		{struct {
			Stamp

			Note string
		}{}, false, false},
		{writeOnly{}, false, false},
		{mixed{}, false, false},
		{byPointer{}, true, true},
		{map[string]*byPointer{}, true, true},
		{map[string]byPointer{}, true, false}, // JSON would write its fields and read its text
		{map[string][]byPointer{}, true, true},
		{map[string][1]byPointer{}, true, false},
		{url.URL{}, true, false}, // as JSON it loses its password
		{big.Int{}, true, true},
		{time.Time{}, true, true},
		{json.RawMessage{}, true, true},
		{struct{}{}, true, true},
		{[0]int{}, true, true},
	} {
		typ := reflect.TypeOf(row.v)
		if typ == reflect.TypeFor[*[]int]() {
			typ = typ.Elem()
		}
		for c, want := range map[codec.Codec]bool{codec.MessagePack(): row.msgpack, codec.JSON(): row.json} {
			err := c.(codec.TypeChecker).CheckType(typ)
			if (err == nil) != want || err != nil && !errors.Is(err, codec.ErrUnsupportedType) {
				t.Errorf("%s: %T: %v", c.Name(), row.v, err)
			}
		}
	}
}

func TestFieldsOfOneNameAreKeptApart(t *testing.T) {
	t.Parallel()
	type outer struct {
		base
		deeper

		ID   int
		Note *string
	}
	note := "b"
	want := outer{base: base{"1"}, deeper: deeper{base{"2"}, "a"}, ID: 3, Note: &note}
	if got := roundTrip(t, codec.MessagePack(), want); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestValueOfAnotherVersionIsReadOrRefused(t *testing.T) { // CASES C5
	t.Parallel()
	write := func(v any) []byte {
		data, err := codec.MessagePack().Append(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	old := write(&struct {
		Gone []string
		Kept int64
		Was  *int `msgpack:"before"`
	}{[]string{"x"}, 300, nil})
	var read struct {
		Kept  float64
		Added []string
		Now   *int `msgpack:"now,alias:before"`
	}
	if err := codec.MessagePack().Decode(old, &read); err != nil || read.Kept != 300 || read.Added != nil || read.Now != nil {
		t.Errorf("%+v, %v", read, err)
	}
	for want, target := range map[string]any{
		"asked for is a int8":   new(struct{ Kept int8 }),
		"asked for is a string": new(struct{ Kept string }),
		"stored is nil": new(struct {
			Before int `msgpack:"before"`
		}),
		"stored is a list":      new(struct{ Gone string }),
		"stored is a list of 1": new(struct{ Gone [2]string }),
		"stored is a map":       new([]int),
	} {
		if err := codec.MessagePack().Decode(old, target); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%T: %v, want %q", target, err, want)
		}
	}
	minus, exact, huge := -1, 0.1, uint64(1<<63)
	for _, row := range []struct{ from, to any }{
		{&minus, new(uint8)}, {&exact, new(int)}, {&exact, new(float32)}, {&huge, new(int64)}, {&huge, new(float64)},
	} {
		if err := codec.MessagePack().Decode(write(row.from), row.to); err == nil {
			t.Errorf("a %T was read as a %T", row.from, row.to)
		}
	}
}

func TestTextThatJSONCannotHoldIsRefused(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{"a\xff": false, "\xed\xa0\x80": false, "\uFFFD": true, `\ufffd`: true, `\`: true, `\\ufffd"`: true} {
		for _, v := range []any{text, map[string]int{text: 1}} {
			if _, err := codec.JSON().Append(nil, &v); (err == nil) != ok {
				t.Errorf("%q in a %T: %v", text, v, err)
			}
		}
		if got := roundTrip(t, codec.MessagePack(), text); got != text {
			t.Errorf("%q came back as %q", text, got)
		}
	}
}
