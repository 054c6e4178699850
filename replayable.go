package idem

import (
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"

	"github.com/idem-go/idem/codec"
)

// replayable is an error that an operation names, so that it comes back as what it was.
type replayable struct {
	name  string
	typ   reflect.Type // nil: a sentinel
	match func(err error) bool
	// write appends what read needs to make the error again; a sentinel needs nothing.
	write func(c codec.Codec, dst []byte, err error) ([]byte, error)
	read  func(c codec.Codec, data []byte) (error, error)
	check func(c codec.Codec) error // what is wrong with the type
}

type replayableOption struct {
	forOperation
	replayable
}

// Replayable names errors of the type E: they count as domain failures, and a
// replay returns a [*ReplayedError] in which [errors.As] finds an E again, in
// another process too, wrapped and joined as it was found. E is stored by its
// [encoding.BinaryMarshaler] if it has one, which then needs the
// unmarshaler as well, else by the operation's codec over its exported fields. An
// error whose text would not be the same afterwards is stored as text alone.
// Names are stored: to rename one makes stored failures come back as text.
func Replayable[E error](name string) OperationOption {
	r := replayable{name: name, typ: reflect.TypeFor[E]()}
	r.match = func(err error) bool {
		_, ok := err.(E) //nolint:errorlint // the tree is walked node by node
		return ok
	}
	r.write = func(c codec.Codec, dst []byte, err error) ([]byte, error) {
		e := err.(E) //nolint:errorlint,forcetypeassert // it has matched
		if m, ok := any(e).(encoding.BinaryMarshaler); ok {
			data, err := m.MarshalBinary()
			return append(dst, data...), err
		}
		return c.Append(dst, &e)
	}
	r.read = func(c codec.Codec, data []byte) (error, error) {
		var e E
		if u := unmarshaler(&e); u != nil {
			return e, u.UnmarshalBinary(data)
		}
		err := c.Decode(data, &e)
		return e, err
	}
	r.check = func(c codec.Codec) error {
		if err := checkReplayable(c, r.typ); err != nil {
			return fmt.Errorf("%s: %w", "Replayable["+r.typ.String()+"]", err)
		}
		return nil
	}
	return replayableOption{replayable: r}
}

// ReplayableSentinel names the error target: it counts as a domain failure,
// and [errors.Is] finds it in the replay.
func ReplayableSentinel(name string, target error) OperationOption {
	r := replayable{name: name}
	r.match = func(err error) bool {
		return reflect.TypeOf(err).Comparable() && err == target //nolint:errorlint // the tree is walked node by node
	}
	r.write = func(_ codec.Codec, dst []byte, _ error) ([]byte, error) { return dst, nil }
	r.read = func(codec.Codec, []byte) (error, error) { return target, nil }
	r.check = func(codec.Codec) error {
		if target == nil || !reflect.TypeOf(target).Comparable() {
			return fmt.Errorf("ReplayableSentinel(%q): %T is no sentinel: give a package's error variable", name, target)
		}
		return nil
	}
	return replayableOption{replayable: r}
}

// unmarshaler returns what reads into *e, which is made to point to something
// if it is a pointer; nil if E has no unmarshaler.
func unmarshaler[E error](e *E) encoding.BinaryUnmarshaler {
	v := reflect.ValueOf(e).Elem()
	if v.Kind() != reflect.Pointer {
		u, _ := any(e).(encoding.BinaryUnmarshaler)
		return u
	}
	made := reflect.New(v.Type().Elem())
	u, ok := reflect.TypeAssert[encoding.BinaryUnmarshaler](made)
	if ok {
		v.Set(made)
	}
	return u
}

var (
	binaryMarshaler   = reflect.TypeFor[encoding.BinaryMarshaler]()
	binaryUnmarshaler = reflect.TypeFor[encoding.BinaryUnmarshaler]()
)

func checkReplayable(c codec.Codec, t reflect.Type) error {
	if t.Kind() == reflect.Interface {
		return errors.New("an interface cannot be made again: name the type")
	}
	elem := t
	if t.Kind() == reflect.Pointer {
		elem = t.Elem()
	}
	if t.Implements(binaryMarshaler) {
		if !reflect.PointerTo(elem).Implements(binaryUnmarshaler) {
			return errors.New("it has MarshalBinary but no UnmarshalBinary: add it")
		}
		return nil
	}
	if elem.Kind() == reflect.Struct && elem.NumField() > 0 && !hasExported(elem) {
		return errors.New("none of its fields is exported: export them, or implement encoding.BinaryMarshaler")
	}
	if checker, ok := c.(codec.TypeChecker); ok {
		return checker.CheckType(t)
	}
	return nil
}

func hasExported(t reflect.Type) bool {
	for f := range t.Fields() {
		if f.IsExported() {
			return true
		}
	}
	return false
}

// named returns the parts of err that the operation names, in the order in
// which [errors.Is] and [errors.As] meet them.
func (op *Operation) named(err error) []namedError {
	if len(op.replayables) == 0 {
		return nil
	}
	var found []namedError
	left := maxErrorTree
	var walk func(error)
	walk = func(err error) {
		if left--; err == nil || left < 0 {
			return
		}
		for i := range op.replayables {
			if op.replayables[i].match(err) {
				found = append(found, namedError{as: &op.replayables[i], err: err})
				break
			}
		}
		switch w := err.(type) { //nolint:errorlint // this is the walk
		case interface{ Unwrap() error }:
			walk(w.Unwrap())
		case interface{ Unwrap() []error }:
			for _, e := range w.Unwrap() {
				walk(e)
			}
		}
	}
	_ = guarded(func() error { walk(err); return nil }) // the methods are other people's
	return found
}

// maxErrorTree bounds how much of an error that wraps itself is looked at.
const maxErrorTree = 1000

// namedError is an error and the name that the operation has for it.
type namedError struct {
	as  *replayable
	err error
}

// appendNamed appends the stored form of the errors: each a name and what its reader needs.
// One that would not come back with the same text is left out.
func appendNamed(dst []byte, c codec.Codec, errs []namedError) []byte {
	for _, n := range errs {
		var data []byte
		same := false
		err := guarded(func() (err error) {
			if data, err = n.as.write(c, nil, n.err); err != nil {
				return err
			}
			again, err := n.as.read(c, data)
			same = err == nil && again.Error() == n.err.Error()
			return err
		})
		if err != nil || !same {
			continue
		}
		for _, part := range [...][]byte{[]byte(n.as.name), data} {
			dst = binary.AppendUvarint(dst, uint64(len(part)))
			dst = append(dst, part...)
		}
	}
	return dst
}

// rebuild makes the stored errors again. What this program does not name, or
// cannot read any more, is left out.
func (op *Operation) rebuild(c codec.Codec, data []byte) error {
	var found []error
	for n := 0; len(data) > 0 && n < maxErrorTree; n++ {
		var parts [2][]byte
		for i := range parts {
			n, size := binary.Uvarint(data)
			if size <= 0 || n > uint64(len(data)-size) { //nolint:gosec // size is at most len(data)
				return join(found)
			}
			end := size + int(n) //nolint:gosec // n is at most len(data)
			parts[i], data = data[size:end], data[end:]
		}
		for i := range op.replayables {
			if r := &op.replayables[i]; r.name == string(parts[0]) {
				_ = guarded(func() error {
					e, err := r.read(c, parts[1])
					if err == nil {
						_ = e.Error() // one that panics (a nil pointer) is of no use
						found = append(found, e)
					}
					return err
				})
			}
		}
	}
	return join(found)
}

// join is [errors.Join], but leaves a lone error as it is.
func join(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// setReplayable adds a named error to the operation.
func (op *Operation) setReplayable(r replayable) error {
	if op.guarantee == ExactlyOnce {
		return errors.New("Replayable: an inbox stores no failures, since they roll it back: return the failure as a value")
	}
	if blank(r.name) {
		return errors.New("Replayable: the name is blank: it is stored, so choose one that lasts")
	}
	for _, other := range op.replayables {
		if other.name == r.name || other.typ == r.typ && r.typ != nil {
			return fmt.Errorf("Replayable(%q): the name or the type is there already", r.name)
		}
	}
	op.replayables = append(op.replayables, r)
	return nil
}
