package codec

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/vmihailenco/msgpack/v5"
)

// checker refuses types whose values would not come back as they were: what
// stands for something that cannot be stored (a channel, a reader), and what
// a codec leaves out without a word.
type checker struct {
	// who has one of these methods writes itself
	forms []reflect.Type
	// embeds says that an embedded pointer is told from nil
	embeds bool
	// key reports whether a map may have keys of the type; nil: of any
	key func(t reflect.Type) bool
}

var (
	textMarshaler  = reflect.TypeFor[encoding.TextMarshaler]()
	msgpackChecker = &checker{forms: []reflect.Type{
		reflect.TypeFor[msgpack.CustomEncoder](), reflect.TypeFor[msgpack.Marshaler](),
		reflect.TypeFor[encoding.BinaryMarshaler](), textMarshaler,
	}}
	jsonChecker = &checker{
		forms:  []reflect.Type{reflect.TypeFor[json.Marshaler](), textMarshaler},
		embeds: true,
		key: func(t reflect.Type) bool {
			return t.Kind() == reflect.String || t.Kind() >= reflect.Int && t.Kind() <= reflect.Uintptr || t.Implements(textMarshaler)
		},
	}
)

func (c *checker) check(t reflect.Type) error { return c.walk(t, t, map[reflect.Type]bool{}) }

func (c *checker) walk(root, t reflect.Type, seen map[reflect.Type]bool) error {
	if seen[t] || c.writesItself(t) {
		return nil
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.UnsafePointer, reflect.Uintptr:
		return unsupported(root, t, "return the data that it stands for")
	case reflect.Complex64, reflect.Complex128:
		return unsupported(root, t, "return its two parts")
	case reflect.Interface: // what it holds would come back as another type
		return unsupported(root, t, "return a concrete type")
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return c.walk(root, t.Elem(), seen)
	case reflect.Map:
		if c.key != nil && !c.key(t.Key()) {
			return unsupported(root, t, "use keys that are strings or integers")
		}
		if err := c.walk(root, t.Key(), seen); err != nil {
			return err
		}
		return c.walk(root, t.Elem(), seen)
	case reflect.Struct:
		return c.fields(root, t, seen)
	default:
	}
	return nil
}

func (c *checker) writesItself(t reflect.Type) bool {
	for _, form := range c.forms {
		if t.Kind() != reflect.Interface && (t.Implements(form) || reflect.PointerTo(t).Implements(form)) {
			return true
		}
	}
	return false
}

func (c *checker) fields(root, t reflect.Type, seen map[reflect.Type]bool) error {
	stored := t.NumField() == 0
	for f := range t.Fields() {
		pointer := f.Type.Kind() == reflect.Pointer
		switch {
		case f.Anonymous && pointer && (!f.IsExported() || !c.embeds):
			return unsupported(root, t, "embed the struct itself instead of a pointer, or name the field")
		case !f.IsExported() && (!f.Anonymous || f.Type.Kind() != reflect.Struct):
			continue
		}
		stored = true
		if err := c.walk(root, f.Type, seen); err != nil {
			return err
		}
	}
	if !stored {
		return unsupported(root, t, "none of its fields is exported: export them, or let it marshal itself")
	}
	return nil
}

func unsupported(root, t reflect.Type, instead string) error {
	if root == t {
		return fmt.Errorf("%w: %v cannot be stored: %s", ErrUnsupportedType, t, instead)
	}
	return fmt.Errorf("%w: %v holds a %v, which cannot be stored: %s", ErrUnsupportedType, root, t, instead)
}
