package codec

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// MessagePack encodes compactly: exported fields by name, with the struct tags
// of vmihailenco/msgpack (`msgpack:"name,omitempty"`), which also calls the
// methods of types that encode themselves. It is the default.
//
// A value comes back as it was: nil and empty slices and maps differ, a time
// keeps its instant, its offset and the abbreviation of its zone. A stored
// field that the type has not is skipped, one that is not stored is zero; a number
// that does not fit, another kind of value, an array of another length are
// errors. A value may nest 1000 deep. What hostile bytes make it allocate is
// bounded by their length; a value that takes more than 32 times its encoded
// length and 32 KiB, for which it must be all but empty, is refused when it is encoded.
func MessagePack() Codec { return msgpackCodec{} }

type msgpackCodec struct{}

func (msgpackCodec) Name() string { return "msgpack" }

func (msgpackCodec) Append(dst []byte, v any) ([]byte, error) {
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return nil, errors.New("codec: Append wants a pointer")
	}
	e := encoders.Get().(*encoder) //nolint:forcetypeassert // the pool holds nothing else
	defer encoders.Put(e)
	*e = encoder{enc: e.enc, out: dst, head: len(dst), next: firstScan}
	defer func() { e.out = nil }()
	if err := planOf(target.Type().Elem()).write(e, target.Elem()); err != nil {
		return nil, err
	}
	written := e.out[e.head:]
	if e.cost > budget(len(written)) {
		return nil, errTooSparse
	}
	if e.itself { // by methods that can write anything
		if rest, err := scan(written, 0); err != nil || len(rest) > 0 {
			return nil, errors.Join(errMalformed, err)
		}
	}
	return e.out, nil
}

func (msgpackCodec) Decode(data []byte, v any) error {
	target := reflect.ValueOf(v)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return errors.New("codec: Decode wants a pointer")
	}
	rest, err := scan(data, 0)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("codec: %d bytes behind the value", len(rest))
	}
	d := decoders.Get().(*decoder) //nolint:forcetypeassert // the pool holds nothing else
	defer decoders.Put(d)
	d.data, d.left, d.zone = data, budget(len(data)), nil
	defer func() { d.data = nil }()
	return planOf(target.Type().Elem()).read(d, target.Elem())
}

func (msgpackCodec) CheckType(t reflect.Type) error { return msgpackChecker.check(t) }

// budget is how many bytes of memory a value may take that is n bytes long. Most
// take far less; the bound is there for bytes that announce what they do not contain.
func budget(n int) int { return 32*n + 32<<10 }

var errTooSparse = errors.New("codec: the value takes far more memory than its encoding has bytes")

// An encoder appends to out. It is the writer of its msgpack half, which
// encodes types that encode themselves; that is costly to make, so it is pooled.
type encoder struct {
	enc  *msgpack.Encoder
	out  []byte
	head int // where the value begins in out
	next int // the length of the value at which it is scanned again
	cost int // of the memory that it takes when it is read

	depth, pointers int  // that what is written is inside of
	itself          bool // something was written by methods of its own
}

// firstScan is from which length on a value is scanned while it is encoded by its own methods. A
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

// A decoder reads data from its front, which was scanned: every length in it is held against what is there.
type decoder struct {
	data []byte
	left int // of the budget

	zone *time.Location // of the last zoned time; nil: none

	dec *msgpack.Decoder // for types that decode themselves
	in  bytes.Reader
}

// take takes n times size bytes from the budget, before they are allocated.
func (d *decoder) take(n, size int) error {
	if size > 0 && n > d.left/size {
		return errTooSparse
	}
	d.left -= n * size
	return nil
}

var (
	encoders = sync.Pool{New: func() any { return &encoder{enc: msgpack.NewEncoder(nil)} }}
	decoders = sync.Pool{New: func() any { return &decoder{dec: msgpack.NewDecoder(nil)} }}
)
