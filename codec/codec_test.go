package codec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"testing"
	"time"

	"github.com/idem-go/idem/codec"
)

type order struct {
	ID    string
	Items []string
	Total float64
}

func TestValueSurvives(t *testing.T) {
	t.Parallel()
	for _, c := range []codec.Codec{codec.MessagePack(), codec.JSON()} {
		want := order{ID: "o-1", Items: []string{"a", ""}, Total: 0.1}
		data, err := c.Append([]byte("head"), &want)
		if err != nil || !bytes.HasPrefix(data, []byte("head")) {
			t.Fatal(c.Name(), err)
		}
		var got order
		if err := c.Decode(data[4:], &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", c.Name(), got, err)
		}
		if err := c.Decode(append(data[4:], data[4:]...), &got); err == nil {
			t.Errorf("%s: two values were read as one", c.Name())
		}
		clear(data) // what was decoded must not share memory with the data
		if got.ID != "o-1" {
			t.Errorf("%s: the value shares memory with its data", c.Name())
		}
	}
}

func TestRawKeepsBytesAsTheyAre(t *testing.T) {
	t.Parallel()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	type text string
	for _, want := range []any{all, []byte{}, []byte(nil), string(all), "", text("x")} {
		from := reflect.New(reflect.TypeOf(want))
		from.Elem().Set(reflect.ValueOf(want))
		data, err := codec.Raw().Append(nil, from.Interface())
		if err != nil {
			t.Fatal(err)
		}
		to := reflect.New(reflect.TypeOf(want))
		if err := codec.Raw().Decode(data, to.Interface()); err != nil || !reflect.DeepEqual(to.Elem().Interface(), want) {
			t.Errorf("%#v, %v; want %#v", to.Elem().Interface(), err, want)
		}
	}
	var s string
	for _, data := range [][]byte{nil, {7}, {0, 0}} {
		if err := codec.Raw().Decode(data, &s); err == nil {
			t.Errorf("% x was read", data)
		}
	}
	if _, err := codec.Raw().Append(nil, &order{}); !errors.Is(err, codec.ErrUnsupportedType) {
		t.Error(err)
	}
}

func TestTypeCheckSeesThroughContainersAndRecursion(t *testing.T) {
	t.Parallel()
	type node struct {
		Next  *node
		Value int
		skip  chan int //nolint:unused // unexported fields are not stored
	}
	check := func(v any) error {
		return codec.MessagePack().(codec.TypeChecker).CheckType(reflect.TypeOf(v))
	}
	if err := check(node{}); err != nil {
		t.Error(err)
	}
	for _, v := range []any{make(chan int), func() {}, []chan int{}, map[string]func(){}, struct{ P *struct{ E error } }{}} {
		if err := check(v); !errors.Is(err, codec.ErrUnsupportedType) {
			t.Errorf("%T: %v", v, err)
		}
	}
}

type (
	inside struct {
		X int
		C chan int
	}
	Public struct{ X int }
	secret struct{ amount int } //nolint:unused // that it cannot be stored is the case
)

func TestTypesThatWouldNotComeBackAreRefused(t *testing.T) { // CASES C3, C4
	t.Parallel()
	for _, v := range []any{
		struct{ A any }{}, map[string]any{}, []any{}, struct{ inside }{}, secret{}, []secret{}, complex(1, 2),
	} {
		for _, c := range []codec.Codec{codec.MessagePack(), codec.JSON()} {
			if err := c.(codec.TypeChecker).CheckType(reflect.TypeOf(v)); !errors.Is(err, codec.ErrUnsupportedType) {
				t.Errorf("%s: %T: %v", c.Name(), v, err)
			}
		}
	}
	for _, row := range []struct {
		v             any
		msgpack, json bool
	}{
		{struct{ *Public }{}, false, true},
		{struct{ *inside }{}, false, false},
		{map[Public]int{}, true, false},
		{map[float64]int{}, true, false},
		{url.URL{}, true, false}, // as JSON it loses its password
		{big.Int{}, true, true},
		{time.Time{}, true, true},
		{map[netip.Addr]time.Duration{}, true, true},
		{json.RawMessage{}, true, true},
		{struct{}{}, true, true},
		{map[int]string{}, true, true},
	} {
		for c, want := range map[codec.Codec]bool{codec.MessagePack(): row.msgpack, codec.JSON(): row.json} {
			if err := c.(codec.TypeChecker).CheckType(reflect.TypeOf(row.v)); (err == nil) != want {
				t.Errorf("%s: %T: %v", c.Name(), row.v, err)
			}
		}
	}
}
