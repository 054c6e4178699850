package codec_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

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
