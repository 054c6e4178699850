// Package envelope is the form of a stored outcome: self-describing bytes that
// say how to read themselves.
//
//	format 1:
//	  byte     1, the format
//	  byte     the number of transforms that were applied to the rest; 0:
//	  byte     the kind
//	  string   codec name   (a string is its length as a uvarint and its bytes)
//	  string   type name    (of a value), or the error's name (of a failure)
//	  string   error text   (of a failure; empty else)
//	  bytes    the payload, to the end
//
// With transforms their names follow as strings, in the order in which they
// were applied, and then what they made of the whole plain form. What is stored
// ends with 4 more bytes, the CRC-32C of all before them: a name or a digit that was damaged
// would else be read as another value.
package envelope

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Format is the newest format that this package reads and the one that it writes.
const Format = 1

// Kind says what an outcome is. Its numbers are stored.
type Kind uint8

// The kinds.
const (
	Value   Kind = 1 // what the operation returned
	Failure Kind = 2 // a failure that counts as an answer
	Omitted Kind = 3 // it succeeded; the value was too large to keep, or could not be encoded
)

// Outcome is a stored outcome.
type Outcome struct {
	Kind    Kind
	Codec   string
	Name    string
	Text    string
	Payload []byte

	// Transforms were applied to an outcome of which Payload is the result;
	// there is nothing else then.
	Transforms []string
}

var (
	// ErrNewer: the outcome was written by a newer version.
	ErrNewer = errors.New("written in a newer format")
	// ErrMalformed: the bytes are no outcome.
	ErrMalformed = errors.New("malformed outcome")
)

// AppendHeader appends everything but the payload, which the caller appends
// behind it.
func AppendHeader(dst []byte, kind Kind, codec, name, text string) []byte {
	dst = append(dst, Format, 0, byte(kind))
	for _, s := range [...]string{codec, name, text} {
		dst = appendString(dst, s)
	}
	return dst
}

// MaxTransforms is how many transforms may be applied to one outcome.
const MaxTransforms = 8

// AppendTransformed appends the head of an outcome that transforms were
// applied to; what they made of it comes behind.
func AppendTransformed(dst []byte, names []string) []byte {
	dst = append(dst, Format, byte(len(names))) //nolint:gosec // at most MaxTransforms
	for _, name := range names {
		dst = appendString(dst, name)
	}
	return dst
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// SumSize is how many bytes [Close] appends.
const SumSize = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Close appends the checksum that ends what is stored.
func Close(data []byte) []byte {
	return binary.BigEndian.AppendUint32(data, crc32.Checksum(data, castagnoli))
}

// Open returns what was closed, sharing its memory.
func Open(stored []byte) ([]byte, error) {
	if len(stored) > 0 && stored[0] > Format {
		return nil, fmt.Errorf("%w: %d", ErrNewer, stored[0])
	}
	body := stored[:max(len(stored)-SumSize, 0)]
	if len(body) == 0 || crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(stored[len(body):]) {
		return nil, fmt.Errorf("%w: the checksum of %d bytes is wrong", ErrMalformed, len(stored))
	}
	return body, nil
}

// Parse reads an outcome that was opened. Its payload shares memory with data; nothing is
// allocated but the strings, which are no longer than data.
func Parse(data []byte) (Outcome, error) {
	switch {
	case len(data) < 3:
		return Outcome{}, fmt.Errorf("%w: %d bytes", ErrMalformed, len(data))
	case data[0] > Format:
		return Outcome{}, fmt.Errorf("%w: %d", ErrNewer, data[0])
	case data[0] != Format, data[1] > MaxTransforms:
		return Outcome{}, ErrMalformed
	}
	if n := data[1]; n > 0 {
		o := Outcome{Transforms: make([]string, n), Payload: data[2:]}
		for i := range o.Transforms {
			var err error
			if o.Transforms[i], o.Payload, err = cutString(o.Payload); err != nil {
				return Outcome{}, err
			}
		}
		return o, nil
	}
	o := Outcome{Kind: Kind(data[2])}
	if o.Kind < Value || o.Kind > Omitted {
		return Outcome{}, fmt.Errorf("%w: kind %d", ErrMalformed, o.Kind)
	}
	o.Payload = data[3:]
	for _, s := range [...]*string{&o.Codec, &o.Name, &o.Text} {
		var err error
		if *s, o.Payload, err = cutString(o.Payload); err != nil {
			return Outcome{}, err
		}
	}
	return o, nil
}

// cutString cuts a string off the front of data.
func cutString(data []byte) (s string, rest []byte, err error) {
	n, size := binary.Uvarint(data)
	if size <= 0 || n > uint64(len(data)-size) { //nolint:gosec // size is at most len(data)
		return "", nil, ErrMalformed
	}
	end := size + int(n) //nolint:gosec // n is at most len(data)
	return string(data[size:end]), data[end:], nil
}
