package codec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
)

// checker refuses types whose values would not come back as they were: what
// stands for something that cannot be stored (a channel, a reader), and what
// a codec leaves out or changes without a word.
type checker struct {
	forms forms
	tag   tagFunc
	// nests says that an embedded struct whose fields have the names of others is kept apart.
	nests bool
	// copies says that what has no address is written by its methods all the same.
	copies bool
	// key reports whether a map may have keys of the type; nil: of any
	key func(t reflect.Type) bool
}

var (
	msgpackChecker = &checker{forms: msgpackForms, tag: msgpackTag, nests: true, copies: true}
	jsonChecker    = &checker{
		forms: forms{{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler]()}, textForm},
		tag:   jsonTag,
		key: func(t reflect.Type) bool {
			return t.Kind() == reflect.String || t.Kind() >= reflect.Int && t.Kind() <= reflect.Uintptr || t.Implements(textForm.writer)
		},
	}
)

func (c *checker) check(t reflect.Type) error {
	w := &walk{checker: c, root: t, seen: map[place]bool{}}
	return w.value(t, true)
}

// walk is one check.
type walk struct {
	*checker

	root reflect.Type
	seen map[place]bool
}

// place is a type where its values have an address, or none.
type place struct {
	typ     reflect.Type
	address bool
}

func (w *walk) refuse(t reflect.Type, instead string) error { return unsupported(w.root, t, instead) }

// value checks t, of which the codec meets values with an address or without one.
func (w *walk) value(t reflect.Type, address bool) error {
	if w.forms.any(t) {
		return w.itself(t, address)
	}
	if w.seen[place{t, address}] {
		return nil
	}
	w.seen[place{t, address}] = true
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.UnsafePointer, reflect.Uintptr:
		return w.refuse(t, "return the data that it stands for")
	case reflect.Complex64, reflect.Complex128:
		return w.refuse(t, "return its two parts")
	case reflect.Interface: // what it holds would come back as another type
		return w.refuse(t, "return a concrete type")
	case reflect.Pointer:
		switch elem := t.Elem(); {
		case w.forms.any(elem):
		case elem.Kind() == reflect.Pointer, elem.Kind() == reflect.Slice, elem.Kind() == reflect.Map:
			return w.refuse(t, "a nil inside the pointer would come back as a nil pointer: leave the pointer out")
		}
		return w.value(t.Elem(), true)
	case reflect.Slice:
		return w.value(t.Elem(), true)
	case reflect.Array:
		return w.value(t.Elem(), address)
	case reflect.Map:
		return w.table(t)
	case reflect.Struct:
		return w.fields(t, address)
	default:
	}
	return nil
}

func (w *walk) table(t reflect.Type) error {
	if w.key != nil && !w.key(t.Key()) {
		return w.refuse(t, "use keys that are strings or integers")
	}
	if holdsPointer(t.Key()) {
		return w.refuse(t, "a pointer comes back as another one: use keys without pointers")
	}
	if err := w.value(t.Key(), false); err != nil {
		return err
	}
	return w.value(t.Elem(), false)
}

// holdsPointer reports whether two values of a map's key type are the same only
// if what they point to is.
func holdsPointer(t reflect.Type) bool {
	switch t.Kind() { //nolint:exhaustive // no others
	case reflect.Pointer:
		return true
	case reflect.Array:
		return holdsPointer(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if t != timeType && f.IsExported() && holdsPointer(f.Type) {
				return true
			}
		}
	}
	return false
}

// itself checks a type that writes or reads itself.
func (w *walk) itself(t reflect.Type, address bool) error {
	out, in := w.forms.writer(t), w.forms.reader(t)
	switch {
	case out < 0 || in < 0 || out != in:
		return w.refuse(t, fmt.Sprintf("it has %s and %s: give it both methods of one pair", w.method(out, true), w.method(in, false)))
	case !w.copies && !address && !t.Implements(w.forms[out].writer):
		return w.refuse(t, "in a map its method "+w.method(out, true)+" is not found: give it to the value, not to the pointer")
	case t.Kind() != reflect.Struct || !promoted(t, w.method(out, true)):
		return nil
	}
	for f := range t.Fields() {
		if name, _ := w.tag(f); !f.Anonymous && stores(f, name) {
			return w.refuse(t, "an embedded field writes in its place, and leaves "+f.Name+" out: name the embedded field")
		}
	}
	return nil
}

// method names the method of a form.
func (w *walk) method(i int, writer bool) string {
	switch {
	case i < 0 && writer:
		return "no method to write itself"
	case i < 0:
		return "none to read itself"
	case writer:
		return w.forms[i].writer.Method(0).Name
	}
	return w.forms[i].reader.Method(0).Name
}

// promoted reports whether a method of the struct t is one of an embedded
// field: then the compiler wrote what calls it.
func promoted(t reflect.Type, method string) bool {
	embeds := false
	for f := range t.Fields() {
		embeds = embeds || f.Anonymous
	}
	if !embeds {
		return false
	}
	for _, t := range [...]reflect.Type{t, reflect.PointerTo(t)} {
		m, ok := t.MethodByName(method)
		if !ok {
			continue
		}
		f := runtime.FuncForPC(m.Func.Pointer())
		if f == nil {
			return false
		}
		if file, _ := f.FileLine(f.Entry()); file != "<autogenerated>" {
			return false
		}
	}
	return true
}

func (w *walk) fields(t reflect.Type, address bool) error {
	for f := range t.Fields() {
		if f.Anonymous && !f.IsExported() && f.Type.Kind() == reflect.Pointer {
			return w.refuse(t, "the embedded *"+f.Name+" cannot be made again: embed the struct itself, or name the field")
		}
	}
	list := storedFields(t, w.tag, w.forms)
	names := map[string]bool{}
	for _, f := range list {
		for _, name := range w.names(f) {
			if names[name] {
				return w.refuse(t, fmt.Sprintf("two of its fields are stored as %q: name them apart", name))
			}
			names[name] = true
		}
		if !f.IsExported() && (w.forms.any(f.Type) || f.Type == timeType) {
			return w.refuse(t, "the embedded "+f.Name+" cannot be read: name the field")
		}
		if err := w.value(f.Type, address); err != nil {
			return err
		}
	}
	if len(list) == 0 && t.NumField() > 0 && !onlyEmpty(t) {
		return w.refuse(t, "none of its fields is exported: export them, or let it marshal itself")
	}
	return nil
}

// names returns the names that a field takes up in its struct: those of an embedded one's
// fields, where the codec does not keep them apart.
func (w *walk) names(f storedField) []string {
	elem := f.Type
	if elem.Kind() == reflect.Pointer {
		elem = elem.Elem()
	}
	tagged, _ := w.tag(f.StructField)
	if w.nests || !f.Anonymous || elem.Kind() != reflect.Struct || tagged != "" {
		return []string{f.stored}
	}
	var names []string
	for _, in := range storedFields(elem, w.tag, w.forms) {
		names = append(names, in.stored)
	}
	return names
}

// onlyEmpty reports whether a struct of embedded structs has nothing in it.
func onlyEmpty(t reflect.Type) bool {
	for f := range t.Fields() {
		if !f.Anonymous || f.Type.Kind() != reflect.Struct || !onlyEmpty(f.Type) {
			return false
		}
	}
	return true
}

func unsupported(root, t reflect.Type, instead string) error {
	if root == t {
		return fmt.Errorf("%w: %v cannot be stored: %s", ErrUnsupportedType, t, instead)
	}
	return fmt.Errorf("%w: %v holds a %v, which cannot be stored: %s", ErrUnsupportedType, root, t, instead)
}
