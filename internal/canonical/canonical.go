// Package canonical writes a JSON document in the one form that equal documents
// share, so that it can be hashed. The form looks like JSON, but a string is its
// length and its bytes, so that no rule of escaping enters. Version 1, frozen:
//
//   - members of an object are sorted by the bytes of their names; a name that
//     occurs twice is refused
//   - the order of an array counts
//   - numbers are equal if their exact decimal values are: 1, 1.0 and 10e-1
//     are the same, 9007199254740992 and 9007199254740993 are not
//   - strings are equal if they have the same characters, however they were escaped
package canonical

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// maxDepth is how deep a document may nest.
const maxDepth = 1000

// Append appends the canonical form of the JSON document data to dst.
func Append(dst, data []byte) ([]byte, error) {
	r := reader{dec: json.NewDecoder(bytes.NewReader(data))}
	r.dec.UseNumber()
	dst, err := r.value(dst, 0)
	if err != nil {
		return nil, err
	}
	if _, err := r.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON document")
	}
	return dst, nil
}

type reader struct{ dec *json.Decoder }

func (r reader) value(dst []byte, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested more than %d deep", maxDepth)
	}
	token, err := r.dec.Token()
	if err != nil {
		return nil, unexpected(err)
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return r.object(dst, depth)
		}
		return r.array(dst, depth)
	case json.Number:
		return appendNumber(dst, string(t))
	case string:
		return appendString(dst, t), nil
	case bool:
		return fmt.Appendf(dst, "%t", t), nil
	default:
		return append(dst, "null"...), nil
	}
}

func (r reader) array(dst []byte, depth int) ([]byte, error) {
	dst = append(dst, '[')
	for first := true; r.dec.More(); first = false {
		if !first {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = r.value(dst, depth+1); err != nil {
			return nil, err
		}
	}
	if _, err := r.dec.Token(); err != nil {
		return nil, unexpected(err)
	}
	return append(dst, ']'), nil
}

func (r reader) object(dst []byte, depth int) ([]byte, error) {
	type member struct {
		name  string
		value []byte
	}
	var members []member
	for r.dec.More() {
		token, err := r.dec.Token()
		if err != nil {
			return nil, unexpected(err)
		}
		name, _ := token.(string) // the decoder accepts nothing else here
		value, err := r.value(nil, depth+1)
		if err != nil {
			return nil, err
		}
		members = append(members, member{name, value})
	}
	if _, err := r.dec.Token(); err != nil {
		return nil, unexpected(err)
	}
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			if m.name == members[i-1].name {
				return nil, fmt.Errorf("the member %q occurs twice", m.name)
			}
			dst = append(dst, ',')
		}
		dst = append(append(appendString(dst, m.name), ':'), m.value...)
	}
	return append(dst, '}'), nil
}

func appendString(dst []byte, s string) []byte {
	dst = strconv.AppendInt(append(dst, '"'), int64(len(s)), 10)
	return append(append(append(dst, ':'), s...), '"')
}

// unexpected says that the document ended too early.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
