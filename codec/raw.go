package codec

import (
	"fmt"
	"reflect"
)

// Raw keeps a []byte or a string (and types made from them) as it is. A nil
// slice is stored apart from an empty one.
func Raw() Codec { return rawCodec{} }

type rawCodec struct{}

// The first byte tells a nil slice from an empty one.
const (
	rawNil   = 0
	rawBytes = 1
)

func (rawCodec) Name() string { return "raw" }

func (c rawCodec) Append(dst []byte, v any) ([]byte, error) {
	val := reflect.ValueOf(v).Elem()
	if err := c.CheckType(val.Type()); err != nil {
		return nil, err
	}
	if val.Kind() == reflect.String {
		return append(append(dst, rawBytes), val.String()...), nil
	}
	if val.IsNil() {
		return append(dst, rawNil), nil
	}
	return append(append(dst, rawBytes), val.Bytes()...), nil
}

func (c rawCodec) Decode(data []byte, v any) error {
	val := reflect.ValueOf(v).Elem()
	if err := c.CheckType(val.Type()); err != nil {
		return err
	}
	switch {
	case len(data) == 1 && data[0] == rawNil:
		val.SetZero()
	case len(data) == 0 || data[0] != rawBytes:
		return fmt.Errorf("codec: %d bytes are no raw value", len(data))
	case val.Kind() == reflect.String:
		val.SetString(string(data[1:]))
	default:
		val.SetBytes(append([]byte{}, data[1:]...))
	}
	return nil
}

func (rawCodec) CheckType(t reflect.Type) error {
	if t.Kind() == reflect.String || t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		return nil
	}
	return fmt.Errorf("%w: the raw codec keeps []byte and string, not %v: use codec.MessagePack or codec.JSON",
		ErrUnsupportedType, t)
}
