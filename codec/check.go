package codec

import (
	"fmt"
	"reflect"
)

// checkData refuses types that hold anything but data: what a channel, a
// function or a reader stands for cannot be stored.
func checkData(t reflect.Type) error { return walk(t, t, map[reflect.Type]bool{}) }

func walk(root, t reflect.Type, seen map[reflect.Type]bool) error {
	if seen[t] {
		return nil
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.UnsafePointer, reflect.Uintptr:
		return unsupported(root, t, "return the data that it stands for")
	case reflect.Interface:
		if t.NumMethod() > 0 || root == t {
			return unsupported(root, t, "return a concrete type")
		}
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return walk(root, t.Elem(), seen)
	case reflect.Map:
		if err := walk(root, t.Key(), seen); err != nil {
			return err
		}
		return walk(root, t.Elem(), seen)
	case reflect.Struct:
		for field := range t.Fields() {
			if !field.IsExported() {
				continue
			}
			if err := walk(root, field.Type, seen); err != nil {
				return err
			}
		}
	default:
	}
	return nil
}

func unsupported(root, t reflect.Type, instead string) error {
	if root == t {
		return fmt.Errorf("%w: %v cannot be stored: %s", ErrUnsupportedType, t, instead)
	}
	return fmt.Errorf("%w: %v holds a %v, which cannot be stored: %s", ErrUnsupportedType, root, t, instead)
}
