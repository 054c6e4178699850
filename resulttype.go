package idem

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/idem-go/idem/codec"
)

// resultType is what is known of the type of a result.
type resultType struct {
	name   string   // stored with each value
	former []string // names that its values may be stored under, too
	err    error    // it cannot be stored
}

// resultType checks the type of a result and names it.
func (op *Operation) resultType(t reflect.Type, s *settings) (resultType, error) {
	if s.ownCodec {
		if known, ok := op.types.Load(t); ok {
			r := known.(resultType) //nolint:forcetypeassert // nothing else is stored
			return r, r.err
		}
	}
	r, ok := op.typeNames[baseType(t)]
	if !ok {
		r.name = typeName(t)
	}
	if checker, ok := s.codec.(codec.TypeChecker); ok {
		r.err = checker.CheckType(t)
	}
	if s.ownCodec {
		op.types.Store(t, r)
	}
	return r, r.err
}

// setTypeName names a type in place of its own name.
func (op *Operation) setTypeName(o typeNameOption) error {
	if blank(o.name) {
		return fmt.Errorf("WithTypeName[%v]: the name is blank: it is stored, so choose one that lasts", o.typ)
	}
	if _, ok := op.typeNames[o.typ]; ok {
		return fmt.Errorf("WithTypeName[%v]: the type has a name already", o.typ)
	}
	if op.typeNames == nil {
		op.typeNames = map[reflect.Type]resultType{}
	}
	op.typeNames[o.typ] = resultType{name: o.name, former: o.former}
	return nil
}

// baseType strips pointers.
func baseType(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// typeName names a type as it is stored: without pointers, by the paths of the
// packages of everything in it. Types that are declared inside functions under one name have
// one name here. The names are frozen.
func typeName(t reflect.Type) string { return innerName(baseType(t)) }

func innerName(t reflect.Type) string {
	switch {
	case t.Name() != "" && t.PkgPath() != "":
		return t.PkgPath() + "." + t.Name() // which has the paths of type arguments
	case t.Name() != "":
		return t.Name()
	}
	switch t.Kind() { //nolint:exhaustive // of what can be stored, only these can have no name
	case reflect.Pointer:
		return "*" + innerName(t.Elem())
	case reflect.Slice:
		return "[]" + innerName(t.Elem())
	case reflect.Array:
		return "[" + strconv.Itoa(t.Len()) + "]" + innerName(t.Elem())
	case reflect.Map:
		return "map[" + innerName(t.Key()) + "]" + innerName(t.Elem())
	case reflect.Struct:
		return structName(t)
	}
	return t.String()
}

func structName(t reflect.Type) string {
	fields := make([]string, 0, t.NumField())
	for f := range t.Fields() {
		field := innerName(f.Type)
		if !f.Anonymous {
			field = f.Name + " " + field
		}
		if f.Tag != "" {
			field += " " + strconv.Quote(string(f.Tag))
		}
		fields = append(fields, field)
	}
	return "struct{" + strings.Join(fields, "; ") + "}"
}
