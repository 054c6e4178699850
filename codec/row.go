package codec

import (
	"reflect"
	"strconv"
	"strings"
)

// row is a struct.
type row struct {
	typ    reflect.Type
	fields []field
	names  map[string]int // into fields
	array  bool           // written as a list, without names
	omits  bool           // some fields may be left out
	size   int
}

type field struct {
	name      string
	index     []int
	plan      func() *plan
	omitEmpty bool
}

// of returns the field of the struct v.
func (f *field) of(v reflect.Value) reflect.Value {
	if len(f.index) == 1 {
		return v.Field(f.index[0])
	}
	return v.FieldByIndex(f.index)
}

func newRow(t reflect.Type) *row {
	r := &row{typ: t, names: map[string]int{}, size: int(t.Size())}
	if f, ok := t.FieldByName("_msgpack"); ok {
		_, options := msgpackTag(f)
		r.array, r.omits = options["as_array"] || options["asArray"], options["omitempty"]
	}
	all := r.omits
	for _, f := range storedFields(t, msgpackTag, msgpackForms) {
		_, options := msgpackTag(f.StructField)
		omit := all || options["omitempty"]
		r.omits = r.omits || omit
		r.names[f.stored] = len(r.fields)
		if alias := f.Tag.Get("msgpack"); strings.Contains(alias, "alias:") {
			_, alias, _ = strings.Cut(alias, "alias:")
			alias, _, _ = strings.Cut(alias, ",")
			r.names[alias] = len(r.fields)
		}
		r.fields = append(r.fields, field{name: f.stored, index: f.Index, plan: later(f.Type), omitEmpty: omit})
	}
	return r
}

func (r *row) write(e *encoder, v reflect.Value) error {
	n := len(r.fields)
	if r.omits && !r.array {
		for i := range r.fields {
			if r.fields[i].omitted(v) {
				n--
			}
		}
	}
	kind := ofMap
	if r.array {
		kind = ofList
	}
	if err := e.length(n, kind); err != nil {
		return err
	}
	if err := e.enter(); err != nil {
		return err
	}
	for i := range r.fields {
		if err := r.writeField(e, v, &r.fields[i]); err != nil {
			return err
		}
	}
	e.depth--
	return nil
}

func (r *row) writeField(e *encoder, v reflect.Value, f *field) error {
	if !r.array {
		if f.omitted(v) {
			return nil
		}
		if err := e.length(len(f.name), ofString); err != nil {
			return err
		}
		e.out = append(e.out, f.name...)
	}
	return f.plan().write(e, f.of(v))
}

// omitted reports whether the field is left out of v.
func (f *field) omitted(v reflect.Value) bool {
	if !f.omitEmpty {
		return false
	}
	v = f.of(v)
	switch v.Kind() { //nolint:exhaustive // of the others, what is zero is empty
	case reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	}
	if z, ok := reflect.TypeAssert[interface{ IsZero() bool }](v); ok && v.Kind() != reflect.Pointer {
		return z.IsZero()
	}
	return v.IsZero()
}

func (r *row) read(d *decoder, v reflect.Value) error {
	if n, ok := d.length(inList); ok {
		if n != len(r.fields) {
			return mismatch("a list of "+strconv.Itoa(n), v.Type())
		}
		for i := range r.fields {
			if err := r.fields[i].plan().read(d, r.fields[i].of(v)); err != nil {
				return err
			}
		}
		return nil
	}
	n, ok := d.length(inMap)
	if !ok {
		return d.mismatch(v)
	}
	for range n {
		if !d.isText() {
			return mismatch("a map whose keys are no names", v.Type())
		}
		i, ok := r.names[string(d.body())]
		if !ok { // of another version of the type
			d.data, _ = scan(d.data, 0)
			continue
		}
		if err := r.fields[i].plan().read(d, r.fields[i].of(v)); err != nil {
			return err
		}
	}
	return nil
}
