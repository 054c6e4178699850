package codec

import (
	"bytes"
	"fmt"
	"reflect"
	"sync"

	"github.com/vmihailenco/msgpack/v5"
)

// MessagePack encodes compactly with vmihailenco/msgpack: exported fields by
// name, struct tag "msgpack". It is the default.
func MessagePack() Codec { return msgpackCodec{} }

type msgpackCodec struct{}

func (msgpackCodec) Name() string { return "msgpack" }

func (msgpackCodec) Append(dst []byte, v any) ([]byte, error) {
	e := encoders.Get().(*encoder) //nolint:forcetypeassert // the pool holds nothing else
	defer encoders.Put(e)
	e.out = dst
	defer func() { e.out = nil }()
	e.enc.Reset(e)
	e.enc.UseCompactInts(true)
	if err := e.enc.Encode(v); err != nil {
		return nil, err
	}
	return e.out, nil
}

func (msgpackCodec) Decode(data []byte, v any) error {
	d := decoders.Get().(*decoder) //nolint:forcetypeassert // the pool holds nothing else
	defer decoders.Put(d)
	d.in.Reset(data)
	defer d.in.Reset(nil)
	d.dec.Reset(&d.in)
	if err := d.dec.Decode(v); err != nil {
		return err
	}
	if rest := d.in.Len(); rest > 0 {
		return fmt.Errorf("codec: %d bytes behind the value", rest)
	}
	return nil
}

func (msgpackCodec) CheckType(t reflect.Type) error { return checkData(t) }

// An encoder appends to out; pooled with its msgpack half, which is costly to make.
type encoder struct {
	enc *msgpack.Encoder
	out []byte
}

func (e *encoder) Write(p []byte) (int, error) {
	e.out = append(e.out, p...)
	return len(p), nil
}

func (e *encoder) WriteByte(b byte) error {
	e.out = append(e.out, b)
	return nil
}

type decoder struct {
	dec *msgpack.Decoder
	in  bytes.Reader
}

var (
	encoders = sync.Pool{New: func() any { return &encoder{enc: msgpack.NewEncoder(nil)} }}
	decoders = sync.Pool{New: func() any { return &decoder{dec: msgpack.NewDecoder(nil)} }}
)
