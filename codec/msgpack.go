package codec

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/vmihailenco/msgpack/v5"
)

// MessagePack encodes compactly with vmihailenco/msgpack: exported fields by
// name, struct tag "msgpack". It is the default. A time comes back as the same
// instant in the local zone. A value may nest 1000 deep.
func MessagePack() Codec { return msgpackCodec{} }

type msgpackCodec struct{}

func (msgpackCodec) Name() string { return "msgpack" }

func (msgpackCodec) Append(dst []byte, v any) ([]byte, error) {
	e := encoders.Get().(*encoder) //nolint:forcetypeassert // the pool holds nothing else
	defer encoders.Put(e)
	e.out, e.head, e.next = dst, len(dst), firstScan
	defer func() { e.out = nil }()
	e.enc.Reset(e)
	e.enc.UseCompactInts(true)
	if err := e.enc.Encode(v); err != nil {
		return nil, err
	}
	if _, err := scan(e.out[e.head:], 0); err != nil { // else it could not be read
		return nil, err
	}
	return e.out, nil
}

func (msgpackCodec) Decode(data []byte, v any) error {
	if _, err := scan(data, 0); err != nil {
		return err
	}
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

func (msgpackCodec) CheckType(t reflect.Type) error { return msgpackChecker.check(t) }

// An encoder appends to out; pooled with its msgpack half, which is costly to make.
type encoder struct {
	enc  *msgpack.Encoder
	out  []byte
	head int // where the value begins in out
	next int // the length of the value at which it is scanned again
}

// firstScan is from which length on a value is scanned while it is encoded. A
// cycle grows until then, and each scan waits for twice the length of the one before.
const firstScan = 16 << 10

func (e *encoder) Write(p []byte) (int, error) {
	e.out = append(e.out, p...)
	return len(p), e.scan()
}

func (e *encoder) WriteByte(b byte) error {
	e.out = append(e.out, b)
	return e.scan()
}

// scan finds a cycle before the stack is used up, which nothing recovers from.
func (e *encoder) scan() error {
	if len(e.out)-e.head < e.next {
		return nil
	}
	e.next *= 2
	if _, err := scan(e.out[e.head:], 0); errors.Is(err, errTooDeep) {
		return err
	}
	return nil // it is not complete yet
}

type decoder struct {
	dec *msgpack.Decoder
	in  bytes.Reader
}

var (
	encoders = sync.Pool{New: func() any { return &encoder{enc: msgpack.NewEncoder(nil)} }}
	decoders = sync.Pool{New: func() any { return &decoder{dec: msgpack.NewDecoder(nil)} }}
)
