package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"strconv"
)

// A reader begins at the front of d.data and leaves what is behind the value
// there. The data was scanned, so what its lengths announce is there.

func readBool(d *decoder, v reflect.Value) error {
	form := d.data[0]
	if form != 0xc2 && form != 0xc3 {
		return d.mismatch(v)
	}
	v.SetBool(form == 0xc3)
	d.data = d.data[1:]
	return nil
}

// integer cuts an integer off the data: a negative one is in i, any other in u.
func (d *decoder) integer() (i int64, u uint64, ok bool) {
	form := d.data[0]
	switch {
	case form <= 0x7f:
		d.data = d.data[1:]
		return 0, uint64(form), true
	case form >= 0xe0:
		d.data = d.data[1:]
		return int64(form) - 256, 0, true
	case form < 0xcc || form > 0xd3:
		return 0, 0, false
	}
	body := d.body()
	var wide [8]byte
	copy(wide[8-len(body):], body)
	u = binary.BigEndian.Uint64(wide[:])
	if form >= 0xd0 {
		shift := 64 - 8*len(body)
		if i = int64(u<<shift) >> shift; i < 0 { //nolint:gosec // the sign is in the highest bit
			return i, 0, true
		}
	}
	return 0, u, true
}

func readInt(d *decoder, v reflect.Value) error {
	at := d.data
	i, u, ok := d.integer()
	if i == 0 && u <= math.MaxInt64 {
		i = int64(u)
	} else if i == 0 {
		ok = false
	}
	if !ok || v.OverflowInt(i) {
		d.data = at
		return d.mismatch(v)
	}
	v.SetInt(i)
	return nil
}

func readUint(d *decoder, v reflect.Value) error {
	at := d.data
	i, u, ok := d.integer()
	if !ok || i < 0 || v.OverflowUint(u) {
		d.data = at
		return d.mismatch(v)
	}
	v.SetUint(u)
	return nil
}

func readFloat(d *decoder, v reflect.Value) error {
	at := d.data
	var f float64
	exact := true
	switch d.data[0] {
	case 0xca:
		f = float64(math.Float32frombits(binary.BigEndian.Uint32(d.body())))
	case 0xcb:
		f = math.Float64frombits(binary.BigEndian.Uint64(d.body()))
		exact = v.Kind() == reflect.Float64 || f != f || float64(float32(f)) == f
	default: // the field was an integer once
		i, u, ok := d.integer()
		f = float64(i) + float64(u)
		exact = ok && math.Abs(f) <= 1<<53 && (v.Kind() == reflect.Float64 || math.Abs(f) <= 1<<24)
	}
	if !exact {
		d.data = at
		return d.mismatch(v)
	}
	v.SetFloat(f)
	return nil
}

// body cuts a value that counts bytes off the data and returns them.
func (d *decoder) body() []byte {
	h := headers[d.data[0]]
	n, at := h.fixed, 1+h.width
	for _, b := range d.data[1:at] {
		n += int(b) << (8 * (h.width - 1))
		h.width--
	}
	body := d.data[at : at+n]
	d.data = d.data[at+n:]
	return body
}

// isText reports whether the next value is a string or bytes: either is read as either.
func (d *decoder) isText() bool {
	form := d.data[0]
	return form >= 0xa0 && form <= 0xbf || form >= 0xd9 && form <= 0xdb || form >= 0xc4 && form <= 0xc6
}

func readString(d *decoder, v reflect.Value) error {
	if !d.isText() {
		return d.mismatch(v)
	}
	body := d.body()
	if err := d.take(len(body), 1); err != nil {
		return err
	}
	v.SetString(string(body))
	return nil
}

func readBytes(d *decoder, v reflect.Value) error {
	if v.Kind() == reflect.Slice && d.isNil() {
		return nil
	}
	if !d.isText() {
		return d.mismatch(v)
	}
	body := d.body()
	if v.Kind() == reflect.Array {
		if len(body) != v.Len() {
			return mismatch(strconv.Itoa(len(body))+" bytes", v.Type())
		}
		copy(v.Bytes(), body)
		return nil
	}
	if err := d.take(len(body), 1); err != nil {
		return err
	}
	v.SetBytes(append(make([]byte, 0, len(body)), body...))
	return nil
}

// isNil cuts nil off the data, if it is next.
func (d *decoder) isNil() bool {
	if d.data[0] != formNil {
		return false
	}
	d.data = d.data[1:]
	return true
}

// length cuts the head of a list or a map off the data.
func (d *decoder) length(values uint64) (n int, ok bool) {
	h := headers[d.data[0]]
	if h.values != values {
		return 0, false
	}
	n = h.fixed
	for _, b := range d.data[1 : 1+h.width] {
		n = n<<8 | int(b)
	}
	d.data = d.data[1+h.width:]
	return n, true
}

const (
	inList = 1
	inMap  = 2
)

// readItself has the value's own methods read it: of what is its own, no more.
func readItself(d *decoder, v reflect.Value) error {
	if !v.CanInterface() {
		return unsupported(v.Type(), v.Type(), "do not embed it unexported")
	}
	rest, err := scan(d.data, 0)
	if err != nil {
		return err
	}
	own := d.data[:len(d.data)-len(rest)]
	d.data = rest
	if hidesMap(own) {
		return errMalformed
	}
	d.in.Reset(own)
	defer d.in.Reset(nil)
	d.dec.Reset(&d.in)
	return d.dec.DecodeValue(v)
}

// mismatch says what is next in place of a value of v's type.
func (d *decoder) mismatch(v reflect.Value) error {
	form := d.data[0]
	h := headers[form]
	what := "a number"
	switch {
	case form == formNil:
		what = "nil"
	case form == 0xc2, form == 0xc3:
		what = "a boolean"
	case h.values == inList:
		what = "a list"
	case h.values == inMap:
		what = "a map or struct"
	case d.isText():
		what = "text or bytes"
	case form >= 0xc7 && form <= 0xc9, form >= 0xd4 && form <= 0xd8:
		what = "an extension"
	}
	return mismatch(what, v.Type())
}

// mismatch says that what is stored does not fit the type.
func mismatch(what string, t reflect.Type) error {
	return fmt.Errorf("codec: stored is %s, asked for is a %v", what, t)
}
