package codec

import (
	"errors"
	"reflect"
	"strconv"
)

// list is a slice or an array.
type list struct {
	elem func() *plan
	size int // of an element
}

func (l list) write(e *encoder, v reflect.Value) error {
	if v.Kind() == reflect.Slice {
		if v.IsNil() {
			e.out = append(e.out, formNil)
			return nil
		}
		e.cost += v.Len() * l.size
	}
	if err := e.length(v.Len(), ofList); err != nil {
		return err
	}
	if err := e.enter(); err != nil {
		return err
	}
	elem := l.elem()
	for i := range v.Len() {
		if err := elem.write(e, v.Index(i)); err != nil {
			return err
		}
	}
	e.depth--
	return nil
}

func (l list) read(d *decoder, v reflect.Value) error {
	if v.Kind() == reflect.Slice && d.isNil() {
		return nil
	}
	n, ok := d.length(inList)
	switch {
	case !ok:
		return d.mismatch(v)
	case v.Kind() == reflect.Array && n != v.Len():
		return mismatch("a list of "+strconv.Itoa(n), v.Type())
	case v.Kind() == reflect.Slice:
		if err := d.take(n, l.size); err != nil {
			return err
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
	}
	elem := l.elem()
	for i := range n {
		if err := elem.read(d, v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

// table is a map.
type table struct {
	key, elem func() *plan
	size      int // of a key and an element
}

// cost is what n entries take: a map has more room than entries.
func (m table) cost() int { return (m.size + 1) * 5 / 2 }

func (m table) write(e *encoder, v reflect.Value) error {
	if v.IsNil() {
		e.out = append(e.out, formNil)
		return nil
	}
	e.cost += v.Len() * m.cost()
	if err := e.length(v.Len(), ofMap); err != nil {
		return err
	}
	if err := e.enter(); err != nil {
		return err
	}
	key, elem := m.key(), m.elem()
	for it := v.MapRange(); it.Next(); {
		if err := key.write(e, it.Key()); err != nil {
			return err
		}
		if err := elem.write(e, it.Value()); err != nil {
			return err
		}
	}
	e.depth--
	return nil
}

func (m table) read(d *decoder, v reflect.Value) error {
	if d.isNil() {
		return nil
	}
	n, ok := d.length(inMap)
	if !ok {
		return d.mismatch(v)
	}
	if err := d.take(n, m.cost()); err != nil {
		return err
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), n))
	if n == 0 {
		return nil
	}
	keys, elems := m.key(), m.elem()
	key, elem := reflect.New(keys.typ).Elem(), reflect.New(elems.typ).Elem()
	for range n {
		key.SetZero()
		elem.SetZero()
		if err := keys.read(d, key); err != nil {
			return err
		}
		if err := elems.read(d, elem); err != nil {
			return err
		}
		v.SetMapIndex(key, elem)
	}
	return nil
}

// reference is a pointer.
type reference struct {
	elem func() *plan
	typ  reflect.Type
	size int
}

var errNilInside = errors.New("codec: what a pointer points to is encoded as nil, and would come back as a nil pointer")

func (r reference) write(e *encoder, v reflect.Value) error {
	if v.IsNil() {
		e.out = append(e.out, formNil)
		return nil
	}
	e.cost += r.size
	// Pointers leave no trace in what is written: without this, a pointer to itself would never end.
	if e.pointers++; e.pointers > maxDepth {
		return errTooDeep
	}
	at := len(e.out)
	err := r.elem().write(e, v.Elem())
	if err == nil && len(e.out) > at && e.out[at] == formNil {
		return errNilInside
	}
	e.pointers--
	return err
}

func (r reference) read(d *decoder, v reflect.Value) error {
	if d.isNil() {
		return nil
	}
	if err := d.take(1, r.size); err != nil {
		return err
	}
	v.Set(reflect.New(r.typ))
	return r.elem().read(d, v.Elem())
}
