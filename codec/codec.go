// Package codec turns results into the bytes that a store keeps, and back.
//
// [MessagePack] is the default, [JSON] is readable in the store, [Raw] keeps
// bytes and strings as they are. They refuse types whose values would come
// back as something else: interfaces, structs without exported fields. What
// hostile bytes make them allocate grows with the length of the bytes; with
// JSON also with the size of what a list or map is of. A codec of your own has a
// name that no other uses: it is stored with every record, and a record is read
// by the codec that it names.
package codec

import (
	"errors"
	"reflect"
)

// Codec encodes and decodes values. Its methods are called concurrently.
type Codec interface {
	// Name is stored with each record. It never changes its meaning.
	Name() string
	// Append appends the encoding of *v to dst; v is a pointer.
	Append(dst []byte, v any) ([]byte, error)
	// Decode sets *v from data; v is a pointer to a zero value. All of data
	// must be one value. The value must not share memory with data.
	Decode(data []byte, v any) error
}

// TypeChecker is implemented by a codec that can tell from a type alone that its
// values would not survive: idem asks it before the operation runs.
type TypeChecker interface {
	// CheckType returns an error that wraps [ErrUnsupportedType] and says
	// what to use instead, or nil.
	CheckType(t reflect.Type) error
}

// ErrUnsupportedType: values of the type cannot be stored and replayed.
var ErrUnsupportedType = errors.New("codec: unsupported type")
