package idem

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/idem-go/idem/codec"
	idemmemory "github.com/idem-go/idem/drivers/memory"
)

// madeWork is a call whose result is of a type that is made while the test runs.
type madeWork struct {
	call

	typ    reflect.Type
	result reflect.Value // that the function returns; invalid: it must not run
	got    reflect.Value // a pointer
}

func (w *madeWork) state() *call             { return &w.call }
func (w *madeWork) callable() bool           { return true }
func (w *madeWork) target() any              { return w.got.Interface() }
func (w *madeWork) copied() any              { return w.got.Elem().Interface() }
func (w *madeWork) reset()                   { w.got.Elem().SetZero() }
func (w *madeWork) resultType() reflect.Type { return w.typ }

func (w *madeWork) invoke(context.Context) error {
	if !w.result.IsValid() {
		return errors.New("it ran again")
	}
	w.got.Elem().Set(w.result)
	return nil
}

func TestReplayIsTheFirstAnswerOrItsTypeIsRefused(t *testing.T) { // CASES C2, C3, C6
	t.Parallel()
	store, err := idemmemory.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []codec.Codec{codec.MessagePack(), codec.JSON()} {
		op, err := NewOperation(Alias("made "+c.Name()), store, AtLeastOnce, WithCodec(c))
		if err != nil {
			t.Fatal(err)
		}
		n, refused := 0, 0
		property := func(t *rapid.T) {
			g := maker{t: t, json: c == codec.JSON()}
			typ := g.typ(3)
			value := reflect.New(typ).Elem()
			key := fmt.Sprint("key ", n)
			n++
			checker, _ := c.(codec.TypeChecker)
			if checker.CheckType(typ) == nil {
				g.fill(value, 3)
			}
			first := &madeWork{typ: typ, result: value, got: reflect.New(typ)}
			err := execute(context.Background(), key, first, []ExecuteOption{On(op)})
			if errors.Is(err, codec.ErrUnsupportedType) && errors.Is(err, ErrConfig) {
				refused++
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			again := &madeWork{typ: typ, got: reflect.New(typ)}
			if err := execute(context.Background(), key, again, []ExecuteOption{On(op)}); err != nil {
				t.Fatalf("%v: %+v: %v", typ, value, err)
			}
			if err := same(value, again.got.Elem()); err != nil {
				t.Fatalf("%v: %+v came back as %+v: %v", typ, value, again.got.Elem(), err)
			}
		}
		for range 10 { // each has its own seed
			rapid.Check(t, property)
		}
		t.Logf("%s: %d values, %d types refused", c.Name(), n, refused)
		if refused*3 > n*2 {
			t.Errorf("%s: %d of %d types were refused", c.Name(), refused, n)
		}
	}
}

// maker makes types and values.
type maker struct {
	t    *rapid.T
	json bool // of what JSON can hold
}

func (g maker) one(n int) int { return rapid.IntRange(0, n-1).Draw(g.t, "choice") }

var leaves = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int16](), reflect.TypeFor[int32](),
	reflect.TypeFor[int64](), reflect.TypeFor[uint](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint32](),
	reflect.TypeFor[uint64](), reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[string](),
	reflect.TypeFor[[]byte](), reflect.TypeFor[[5]byte](), reflect.TypeFor[time.Time](), reflect.TypeFor[time.Duration](),
	reflect.TypeFor[netip.Addr](), reflect.TypeFor[*big.Int](), reflect.TypeFor[struct{}](), reflect.TypeFor[Guarantee](),
}

// bad are what no value may hold.
var bad = []reflect.Type{
	reflect.TypeFor[any](), reflect.TypeFor[chan int](), reflect.TypeFor[func()](), reflect.TypeFor[error](), reflect.TypeFor[complex128](),
}

func (g maker) typ(depth int) reflect.Type {
	if depth == 0 {
		if g.one(40) == 0 {
			return bad[g.one(len(bad))]
		}
		return leaves[g.one(len(leaves))]
	}
	switch g.one(7) {
	case 0:
		return reflect.SliceOf(g.typ(depth - 1))
	case 1:
		return reflect.ArrayOf(g.one(4), g.typ(depth-1))
	case 2:
		key := g.typ(g.one(2))
		if !key.Comparable() || key.Kind() == reflect.Interface {
			key = reflect.TypeFor[string]()
		}
		return reflect.MapOf(key, g.typ(depth-1))
	case 3:
		return reflect.PointerTo(g.typ(depth - 1))
	case 4, 5:
		fields := make([]reflect.StructField, 1+g.one(4))
		for i := range fields {
			fields[i] = reflect.StructField{Name: string(rune('A' + i)), Type: g.typ(depth - 1)}
			if g.one(3) == 0 {
				name := fmt.Sprintf("%c_%d", 'a'+i, i)
				fields[i].Tag = reflect.StructTag(fmt.Sprintf(`json:%q msgpack:%q`, name, name))
			}
		}
		return reflect.StructOf(fields)
	default:
		return g.typ(0)
	}
}

// fill sets v, which is zero, to any value of its type.
func (g maker) fill(v reflect.Value, depth int) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(g.time()))
		return
	case netip.Addr:
		v.Set(reflect.ValueOf([]netip.Addr{{}, netip.IPv6Loopback(), netip.MustParseAddr("10.0.0.1")}[g.one(3)]))
		return
	case *big.Int:
		if g.one(3) > 0 {
			v.Set(reflect.ValueOf(new(big.Int).Exp(big.NewInt(-3), big.NewInt(int64(g.one(200))), nil)))
		}
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(g.one(2) == 0)
	case reflect.String:
		v.SetString(g.text())
	case reflect.Float32, reflect.Float64:
		v.SetFloat(g.float(v.Kind() == reflect.Float32))
	case reflect.Slice:
		if g.one(4) > 0 {
			v.Set(reflect.MakeSlice(v.Type(), g.one(4), 4))
		}
		g.elements(v, depth)
	case reflect.Array:
		g.elements(v, depth)
	case reflect.Map:
		g.entries(v, depth)
	case reflect.Pointer:
		if g.one(4) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			g.fill(v.Elem(), depth)
		}
	case reflect.Struct:
		for _, f := range v.Fields() {
			g.fill(f, depth)
		}
	default:
		g.integer(v)
	}
}

func (g maker) elements(v reflect.Value, depth int) {
	for i := range v.Len() {
		g.fill(v.Index(i), depth)
	}
}

func (g maker) entries(v reflect.Value, depth int) {
	if g.one(4) == 0 {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for range g.one(4) {
		key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		g.fill(key, depth)
		g.fill(elem, depth)
		v.SetMapIndex(key, elem)
		if !v.MapIndex(key).IsValid() { // NaN: no key that could be found
			v.Set(reflect.MakeMap(v.Type()))
		}
	}
}

// integer sets v to a number, often one at a limit.
func (g maker) integer(v reflect.Value) {
	if v.CanInt() {
		n := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, -1, 1, 127, 128, -32, -33, 255, math.MinInt8, math.MinInt16, math.MinInt32, math.MinInt64, math.MaxInt64, 1<<53 + 1})).Draw(g.t, "int")
		for v.OverflowInt(n) {
			n >>= 8
		}
		v.SetInt(n)
		return
	}
	n := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, 127, 128, 255, 256, math.MaxUint16, math.MaxUint32, math.MaxUint64, 1<<53 + 1})).Draw(g.t, "uint")
	for v.OverflowUint(n) {
		n >>= 8
	}
	v.SetUint(n)
}

func (g maker) float(single bool) float64 {
	special := []float64{0, math.Copysign(0, -1), 1, 0.1, math.MaxFloat32, math.SmallestNonzeroFloat32}
	if !g.json {
		special = append(special, math.Inf(1), math.Inf(-1), math.NaN())
	}
	if single {
		return float64(float32(rapid.OneOf(rapid.Float64Range(-1e30, 1e30), rapid.SampledFrom(special)).Draw(g.t, "float")))
	}
	return rapid.OneOf(rapid.Float64Range(-1e300, 1e300), rapid.SampledFrom(append(special, math.MaxFloat64, math.SmallestNonzeroFloat64))).Draw(g.t, "float")
}

func (g maker) text() string {
	if g.json {
		return rapid.String().Draw(g.t, "text")
	}
	return string(rapid.SliceOf(rapid.Byte()).Draw(g.t, "text"))
}

func (g maker) time() time.Time {
	at := time.Unix(rapid.Int64Range(-62135596800, 253370764800).Draw(g.t, "sec"), int64(g.one(1e9)))
	switch g.one(4) {
	case 0:
		return time.Time{}
	case 1:
		return at.UTC()
	case 2:
		return at
	}
	return at.In(time.FixedZone([]string{"", "UTC", "CET"}[g.one(3)], (g.one(47)-23)*1800))
}

// same says how two values of one type differ.
func same(a, b reflect.Value) error {
	differ := fmt.Errorf("%v is not %v", a, b)
	if t, ok := reflect.TypeAssert[time.Time](a); ok {
		back, _ := reflect.TypeAssert[time.Time](b)
		if !t.Equal(back) || t.Format(time.RFC3339Nano) != back.Format(time.RFC3339Nano) {
			return differ
		}
		return nil
	}
	if n, ok := reflect.TypeAssert[*big.Int](a); ok && !a.IsNil() {
		if back, _ := reflect.TypeAssert[*big.Int](b); back == nil || n.Cmp(back) != 0 {
			return differ
		}
		return nil
	}
	switch a.Kind() { //nolint:exhaustive // the others are compared as they are
	case reflect.Float32, reflect.Float64:
		if math.Float64bits(a.Float()) != math.Float64bits(b.Float()) && !(math.IsNaN(a.Float()) && math.IsNaN(b.Float())) {
			return differ
		}
		return nil
	case reflect.Slice, reflect.Map, reflect.Pointer:
		if a.IsNil() != b.IsNil() {
			return differ
		}
	}
	switch a.Kind() { //nolint:exhaustive // the others are compared as they are
	case reflect.Pointer:
		if a.IsNil() {
			return nil
		}
		return same(a.Elem(), b.Elem())
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() {
			return differ
		}
		for i := range a.Len() {
			if err := same(a.Index(i), b.Index(i)); err != nil {
				return err
			}
		}
		return nil
	case reflect.Map:
		return sameEntries(a, b)
	case reflect.Struct:
		if a.Type() == reflect.TypeFor[netip.Addr]() {
			break
		}
		for i := range a.NumField() {
			if err := same(a.Field(i), b.Field(i)); err != nil {
				return err
			}
		}
		return nil
	}
	if a.Interface() != b.Interface() {
		return differ
	}
	return nil
}

// sameEntries looks each entry up by its looks: a time with a zone is another key than one that
// equals it.
func sameEntries(a, b reflect.Value) error {
	if a.Len() != b.Len() {
		return fmt.Errorf("%d entries are not %d", a.Len(), b.Len())
	}
	for _, key := range a.MapKeys() {
		err := fmt.Errorf("there is no entry %v", key)
		for _, other := range b.MapKeys() {
			if same(key, other) == nil && err != nil {
				err = same(a.MapIndex(key), b.MapIndex(other))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
