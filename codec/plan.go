package codec

import (
	"encoding"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// plan is how values of one type are written and read. It is made once.
type plan struct {
	typ   reflect.Type
	write func(e *encoder, v reflect.Value) error
	read  func(d *decoder, v reflect.Value) error // into a settable zero value
}

var plans sync.Map // reflect.Type to *plan

// planOf returns the plan of t. A plan that is under construction is found in
// plans by the types inside it, since a type may hold itself.
func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan) //nolint:forcetypeassert // nothing else is stored
	}
	p := newPlan(t)
	known, _ := plans.LoadOrStore(t, p)
	return known.(*plan) //nolint:forcetypeassert // nothing else is stored
}

// later is planOf for what is inside another type: it is looked up when there is a value.
func later(t reflect.Type) func() *plan {
	var found atomic.Pointer[plan]
	return func() *plan {
		p := found.Load()
		if p == nil {
			p = planOf(t)
			found.Store(p)
		}
		return p
	}
}

var timeType = reflect.TypeFor[time.Time]()

func newPlan(t reflect.Type) *plan {
	p := &plan{typ: t}
	switch kind := t.Kind(); {
	case t == timeType:
		p.write, p.read = writeTime, readTime
	case msgpackForms.any(t):
		p.write, p.read = writeItself, readItself
	case kind == reflect.Bool:
		p.write, p.read = writeBool, readBool
	case kind >= reflect.Int && kind <= reflect.Int64:
		p.write, p.read = writeInt, readInt
	case kind >= reflect.Uint && kind <= reflect.Uint64:
		p.write, p.read = writeUint, readUint
	case kind == reflect.Float32, kind == reflect.Float64:
		p.write, p.read = writeFloat, readFloat
	case kind == reflect.String:
		p.write, p.read = writeString, readString
	case (kind == reflect.Slice || kind == reflect.Array) && t.Elem().Kind() == reflect.Uint8 && !msgpackForms.any(t.Elem()):
		p.write, p.read = writeBytes, readBytes
	case kind == reflect.Slice, kind == reflect.Array:
		l := list{elem: later(t.Elem()), size: int(t.Elem().Size())}
		p.write, p.read = l.write, l.read
	case kind == reflect.Map:
		m := table{key: later(t.Key()), elem: later(t.Elem()), size: int(t.Key().Size() + t.Elem().Size())}
		p.write, p.read = m.write, m.read
	case kind == reflect.Pointer:
		r := reference{elem: later(t.Elem()), typ: t.Elem(), size: int(t.Elem().Size())}
		p.write, p.read = r.write, r.read
	case kind == reflect.Struct:
		r := newRow(t)
		p.write, p.read = r.write, r.read
	default:
		p.write = func(*encoder, reflect.Value) error { return unsupported(t, t, "return a concrete type") }
		p.read = func(*decoder, reflect.Value) error { return unsupported(t, t, "ask for a concrete type") }
	}
	return p
}

// forms are pairs of methods by which a type writes and reads itself, in the order in which a
// codec looks for them.
type forms []form

type form struct{ writer, reader reflect.Type }

var (
	textForm     = form{reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler]()}
	msgpackForms = forms{
		{reflect.TypeFor[msgpack.CustomEncoder](), reflect.TypeFor[msgpack.CustomDecoder]()},
		{reflect.TypeFor[msgpack.Marshaler](), reflect.TypeFor[msgpack.Unmarshaler]()},
		{reflect.TypeFor[encoding.BinaryMarshaler](), reflect.TypeFor[encoding.BinaryUnmarshaler]()},
		textForm,
	}
)

// any reports whether values of t, or what they are the values of, write or read themselves.
func (fs forms) any(t reflect.Type) bool {
	if t.Kind() == reflect.Interface || t.Kind() == reflect.Pointer {
		return false // a pointer is followed
	}
	w, r := fs.writer(t), fs.reader(t)
	return w >= 0 || r >= 0
}

// writer returns the number of the form that t is written by; -1: none. What t
// itself has comes before what only a pointer to it has.
func (fs forms) writer(t reflect.Type) int {
	return fs.find(t, func(f form) reflect.Type { return f.writer })
}

func (fs forms) reader(t reflect.Type) int {
	return fs.find(t, func(f form) reflect.Type { return f.reader })
}

func (fs forms) find(t reflect.Type, method func(form) reflect.Type) int {
	for _, t := range [...]reflect.Type{t, reflect.PointerTo(t)} {
		for i, f := range fs {
			if t.Implements(method(f)) {
				return i
			}
		}
	}
	return -1
}
