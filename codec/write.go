package codec

import (
	"encoding/binary"
	"errors"
	"math"
	"reflect"
)

const formNil = 0xc0

func writeBool(e *encoder, v reflect.Value) error {
	form := byte(0xc2)
	if v.Bool() {
		form = 0xc3
	}
	e.out = append(e.out, form)
	return nil
}

func writeInt(e *encoder, v reflect.Value) error {
	n := v.Int()
	bits := uint64(n) //nolint:gosec // two's complement
	switch {
	case n >= 0:
		e.uint(bits)
	case n >= -32:
		e.out = append(e.out, byte(bits)) //nolint:gosec // the lower bytes
	case n >= math.MinInt8:
		e.out = append(e.out, 0xd0, byte(bits)) //nolint:gosec // the lower bytes
	case n >= math.MinInt16:
		e.out = binary.BigEndian.AppendUint16(append(e.out, 0xd1), uint16(bits)) //nolint:gosec // the lower bytes
	case n >= math.MinInt32:
		e.out = binary.BigEndian.AppendUint32(append(e.out, 0xd2), uint32(bits)) //nolint:gosec // the lower bytes
	default:
		e.out = binary.BigEndian.AppendUint64(append(e.out, 0xd3), bits)
	}
	return nil
}

func writeUint(e *encoder, v reflect.Value) error {
	e.uint(v.Uint())
	return nil
}

func (e *encoder) uint(n uint64) {
	switch {
	case n <= math.MaxInt8:
		e.out = append(e.out, byte(n))
	case n <= math.MaxUint8:
		e.out = append(e.out, 0xcc, byte(n))
	case n <= math.MaxUint16:
		e.out = binary.BigEndian.AppendUint16(append(e.out, 0xcd), uint16(n))
	case n <= math.MaxUint32:
		e.out = binary.BigEndian.AppendUint32(append(e.out, 0xce), uint32(n))
	default:
		e.out = binary.BigEndian.AppendUint64(append(e.out, 0xcf), n)
	}
}

func writeFloat(e *encoder, v reflect.Value) error {
	if v.Kind() == reflect.Float32 {
		e.out = binary.BigEndian.AppendUint32(append(e.out, 0xca), math.Float32bits(float32(v.Float())))
	} else {
		e.out = binary.BigEndian.AppendUint64(append(e.out, 0xcb), math.Float64bits(v.Float()))
	}
	return nil
}

// Each kind of value with a length has forms for lengths below limit, which
// are part of the form, and for lengths of one (0: there is none), two and four bytes.
type lengths struct {
	short, limit   int
	one, two, four byte
}

var (
	ofString = lengths{short: 0xa0, limit: 32, one: 0xd9, two: 0xda, four: 0xdb}
	ofBytes  = lengths{one: 0xc4, two: 0xc5, four: 0xc6}
	ofList   = lengths{short: 0x90, limit: 16, two: 0xdc, four: 0xdd}
	ofMap    = lengths{short: 0x80, limit: 16, two: 0xde, four: 0xdf}
	ofExt    = lengths{one: 0xc7, two: 0xc8, four: 0xc9}
)

var errTooLong = errors.New("codec: MessagePack ends at lengths of 4 GiB")

func (e *encoder) length(n int, l lengths) error {
	switch {
	case n < l.limit:
		e.out = append(e.out, byte(l.short|n)) //nolint:gosec // below 32
	case n <= math.MaxUint8 && l.one != 0:
		e.out = append(e.out, l.one, byte(n)) //nolint:gosec // just compared
	case n <= math.MaxUint16:
		e.out = binary.BigEndian.AppendUint16(append(e.out, l.two), uint16(n)) //nolint:gosec // just compared
	case int64(n) <= math.MaxUint32:
		e.out = binary.BigEndian.AppendUint32(append(e.out, l.four), uint32(n))
	default:
		return errTooLong
	}
	return nil
}

func writeString(e *encoder, v reflect.Value) error {
	e.cost += v.Len()
	err := e.length(v.Len(), ofString)
	e.out = append(e.out, v.String()...)
	return err
}

func writeBytes(e *encoder, v reflect.Value) error {
	if v.Kind() == reflect.Slice && v.IsNil() {
		e.out = append(e.out, formNil)
		return nil
	}
	e.cost += v.Len()
	err := e.length(v.Len(), ofBytes)
	if v.Kind() == reflect.Slice || v.CanAddr() {
		e.out = append(e.out, v.Bytes()...)
		return err
	}
	for i := range v.Len() {
		e.out = append(e.out, byte(v.Index(i).Uint())) //nolint:gosec // it is a byte
	}
	return err
}

// enter counts a list or map inside another; who enters leaves by e.depth--.
func (e *encoder) enter() error {
	if e.depth++; e.depth > maxDepth {
		return errTooDeep
	}
	return nil
}

// writeItself has the value's own methods write it.
func writeItself(e *encoder, v reflect.Value) error {
	if !v.CanInterface() {
		return unsupported(v.Type(), v.Type(), "do not embed it unexported")
	}
	if !v.CanAddr() { // its methods may be those of a pointer
		addressable := reflect.New(v.Type()).Elem()
		addressable.Set(v)
		v = addressable
	}
	e.itself = true
	e.enc.Reset(e)
	e.enc.UseCompactInts(true)
	return e.enc.EncodeValue(v)
}
