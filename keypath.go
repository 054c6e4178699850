package idem

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// KeyPath returns a function that takes the key from a place inside the input:
// "command.orderId" is the member orderId of the member command. A member is
// an exported field by its JSON name or its Go name, or an entry of a map with
// string keys; pointers and interfaces are followed. The place must hold a string, an integer, a
// [fmt.Stringer] or an [encoding.TextMarshaler]. A path that In cannot have is
// an [*Error] of [ErrConfig] here; what only an input shows (a nil pointer, an
// absent entry, an empty string) is an error of the function.
func KeyPath[In any](path string) (KeyFunc[In], error) {
	t := reflect.TypeFor[In]()
	names := strings.Split(path, ".")
	for i, name := range names {
		next, err := memberType(t, name)
		if err != nil {
			return nil, configError("", "KeyPath(%q): %v has no %q: %v", path, reflect.TypeFor[In](), strings.Join(names[:i+1], "."), err)
		}
		t = next
	}
	if err := leafType(t); err != nil {
		return nil, configError("", "KeyPath(%q): %v", path, err)
	}
	return func(in In) (string, error) {
		v := reflect.ValueOf(&in).Elem()
		for _, name := range names {
			var err error
			if v, err = member(v, name); err != nil {
				return "", fmt.Errorf("the key's path %s: %w", path, err)
			}
		}
		key, err := leaf(v)
		if err != nil {
			return "", fmt.Errorf("the key's path %s: %w", path, err)
		}
		return key, nil
	}, nil
}

// memberType is the type of a member; that of an interface is only known when
// there is a value.
func memberType(t reflect.Type, name string) (reflect.Type, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct:
		f, ok := findField(t, name)
		if !ok {
			return nil, fmt.Errorf("%v has no such exported field", t)
		}
		return f.Type, nil
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return nil, fmt.Errorf("the keys of %v are no strings", t)
		}
		return t.Elem(), nil
	case reflect.Interface:
		return t, nil
	default:
		return nil, fmt.Errorf("%v has no members", t)
	}
}

// findField finds an exported field by its JSON name, else by its Go name.
func findField(t reflect.Type, name string) (found reflect.StructField, ok bool) {
	for _, f := range reflect.VisibleFields(t) {
		if !f.IsExported() {
			continue
		}
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return f, true
		}
		if f.Name == name {
			found, ok = f, true
		}
	}
	return found, ok
}

func member(v reflect.Value, name string) (reflect.Value, error) {
	v, err := follow(v)
	if err != nil {
		return v, err
	}
	switch v.Kind() {
	case reflect.Struct:
		f, ok := findField(v.Type(), name)
		if !ok {
			return v, fmt.Errorf("%v has no exported field %q", v.Type(), name)
		}
		return v.FieldByIndexErr(f.Index)
	case reflect.Map:
		if v.Type().Key().Kind() == reflect.String {
			if entry := v.MapIndex(reflect.ValueOf(name).Convert(v.Type().Key())); entry.IsValid() {
				return entry, nil
			}
		}
		return v, fmt.Errorf("there is no entry %q", name)
	default:
		return v, fmt.Errorf("%v has no members", v.Type())
	}
}

var (
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	stringer      = reflect.TypeFor[fmt.Stringer]()
)

func leafType(t reflect.Type) error {
	for {
		pointer := reflect.PointerTo(t)
		if pointer.Implements(textMarshaler) || pointer.Implements(stringer) || t.Kind() == reflect.Interface {
			return nil
		}
		if t.Kind() != reflect.Pointer {
			break
		}
		t = t.Elem()
	}
	switch t.Kind() { //nolint:exhaustive // everything else is no key
	case reflect.String,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return nil
	}
	return fmt.Errorf("a %v is no key: use a string, an integer, a fmt.Stringer or an encoding.TextMarshaler", t)
}

// leaf writes the value at the path as a key.
func leaf(v reflect.Value) (string, error) {
	for {
		if key, ok, err := written(v); ok || err != nil {
			return key, err
		}
		if v.Kind() != reflect.Pointer && v.Kind() != reflect.Interface {
			break
		}
		if v.IsNil() {
			return "", fmt.Errorf("there is a nil %v", v.Type())
		}
		v = v.Elem()
	}
	switch {
	case v.Kind() == reflect.String:
		return v.String(), nil
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10), nil
	case v.CanUint() && v.Kind() != reflect.Uintptr:
		return strconv.FormatUint(v.Uint(), 10), nil
	}
	return "", leafType(v.Type())
}

// written asks a value that writes itself, through its address if need be.
func written(v reflect.Value) (key string, ok bool, err error) {
	if (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && v.IsNil() {
		return "", false, nil
	}
	if !v.Type().Implements(textMarshaler) && !v.Type().Implements(stringer) {
		if v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
			return "", false, nil
		}
		addressable := reflect.New(v.Type())
		addressable.Elem().Set(v)
		v = addressable
	}
	switch w := v.Interface().(type) {
	case encoding.TextMarshaler:
		text, err := w.MarshalText()
		return string(text), err == nil, err
	case fmt.Stringer:
		return w.String(), true, nil
	}
	return "", false, nil
}

// follow leads through pointers and interfaces.
func follow(v reflect.Value) (reflect.Value, error) {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return v, fmt.Errorf("there is a nil %v", v.Type())
		}
		v = v.Elem()
	}
	return v, nil
}
