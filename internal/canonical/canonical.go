// Package canonical writes a JSON document in the one form that equal documents
// share, so that it can be hashed. The form looks like JSON, but a string is its
// length and its bytes, so that no rule of escaping enters. Version 1, frozen:
//
//   - members of an object are sorted by the bytes of their names; a name that
//     occurs twice is refused
//   - the order of an array counts
//   - numbers are equal if their exact decimal values are: 1, 1.0 and 10e-1
//     are the same, 9007199254740992 and 9007199254740993 are not
//   - strings are equal if they have the same characters, however they were
//     escaped; what is no character (invalid UTF-8, half a surrogate pair) is refused,
//     since readers replace it, and different strings become one
package canonical

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// maxDepth is how deep a document may nest.
const maxDepth = 1000

// Append appends the canonical form of the JSON document data to dst. It takes
// time and memory in proportion to data, but for the sorting of members.
func Append(dst, data []byte) ([]byte, error) {
	if err := check(data); err != nil {
		return nil, err
	}
	w := writer{doc: data, dst: dst}
	if err := w.measure(); err != nil {
		return nil, err
	}
	if _, _, err := w.value(w.space(0), 0); err != nil {
		return nil, err
	}
	return w.dst, nil
}

// check says what is wrong with the document's syntax.
func check(data []byte) error {
	if json.Valid(data) {
		return nil
	}
	var v json.RawMessage
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	return errors.New("no JSON document")
}

// writer writes the form of a valid document. Members of an object are written
// in another order than they have, and a value is skipped for each level that
// it is inside of, so where the containers end is found first.
type writer struct {
	doc, dst []byte
	inner    []container // in the order in which they begin
}

// container is an object or an array.
type container struct {
	end   int // behind its last byte
	after int // the number of the next container that is not inside it
}

// measure finds the containers.
func (w *writer) measure() error {
	n := bytes.Count(w.doc, []byte{'{'}) + bytes.Count(w.doc, []byte{'['}) // in strings too
	w.inner = make([]container, 0, min(n, len(w.doc)/2+1))
	var open []int
	for i := 0; i < len(w.doc); i++ {
		switch w.doc[i] {
		case '"':
			i = w.stringEnd(i) - 1
		case '{', '[':
			if open = append(open, len(w.inner)); len(open) > maxDepth {
				return fmt.Errorf("nested more than %d deep", maxDepth)
			}
			w.inner = append(w.inner, container{})
		case '}', ']':
			w.inner[open[len(open)-1]] = container{end: i + 1, after: len(w.inner)}
			open = open[:len(open)-1]
		}
	}
	return nil
}

// value writes the value at i, whose first container has the number n. It returns
// where the value ends, and the number of the next container.
func (w *writer) value(i, n int) (end, next int, err error) {
	switch w.doc[i] {
	case '{':
		err = w.object(i, n)
		return w.inner[n].end, w.inner[n].after, err
	case '[':
		err = w.array(i, n)
		return w.inner[n].end, w.inner[n].after, err
	case '"':
		text, end, err := w.text(i)
		w.string(text)
		return end, n, err
	case 't', 'f', 'n':
		end = w.plainEnd(i)
		w.dst = append(w.dst, w.doc[i:end]...)
	default:
		end = w.plainEnd(i)
		w.dst, err = appendNumber(w.dst, string(w.doc[i:end]))
	}
	return end, n, err
}

func (w *writer) array(i, n int) error {
	end := w.inner[n].end - 1
	n++
	w.dst = append(w.dst, '[')
	for i = w.space(i + 1); i < end; {
		var err error
		if i, n, err = w.value(i, n); err != nil {
			return err
		}
		if i = w.space(i); i < end { // a comma
			w.dst = append(w.dst, ',')
			i = w.space(i + 1)
		}
	}
	w.dst = append(w.dst, ']')
	return nil
}

// member is a member of an object.
type member struct {
	name  []byte
	value int // where it begins
	inner int // the number of its first container
}

func (w *writer) object(i, n int) error {
	members, err := w.members(i, n)
	if err != nil {
		return err
	}
	slices.SortFunc(members, func(a, b member) int { return bytes.Compare(a.name, b.name) })
	w.dst = append(w.dst, '{')
	for i, m := range members {
		if i > 0 {
			if bytes.Equal(m.name, members[i-1].name) {
				return fmt.Errorf("the member %q occurs twice", m.name)
			}
			w.dst = append(w.dst, ',')
		}
		w.string(m.name)
		w.dst = append(w.dst, ':')
		if _, _, err := w.value(m.value, m.inner); err != nil {
			return err
		}
	}
	w.dst = append(w.dst, '}')
	return nil
}

// members finds the members of the object at i.
func (w *writer) members(i, n int) ([]member, error) {
	var members []member
	end := w.inner[n].end - 1
	n++
	for i = w.space(i + 1); i < end; {
		name, at, err := w.text(i)
		if err != nil {
			return nil, err
		}
		i = w.space(w.space(at) + 1) // behind the colon
		members = append(members, member{name, i, n})
		switch w.doc[i] {
		case '{', '[':
			i, n = w.inner[n].end, w.inner[n].after
		case '"':
			i = w.stringEnd(i)
		default:
			i = w.plainEnd(i)
		}
		if i = w.space(i); i < end { // a comma
			i = w.space(i + 1)
		}
	}
	return members, nil
}

// space returns where the white space at i ends.
func (w *writer) space(i int) int {
	for i < len(w.doc) && (w.doc[i] == ' ' || w.doc[i] == '\n' || w.doc[i] == '\t' || w.doc[i] == '\r') {
		i++
	}
	return i
}

// plainEnd returns where the number or word at i ends.
func (w *writer) plainEnd(i int) int {
	for i < len(w.doc) && (w.doc[i] >= '0' && w.doc[i] <= '9' || w.doc[i]|0x20 >= 'a' && w.doc[i]|0x20 <= 'z' ||
		w.doc[i] == '-' || w.doc[i] == '+' || w.doc[i] == '.') {
		i++
	}
	return i
}
