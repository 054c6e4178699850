package codec

import (
	"encoding/binary"
	"reflect"
	"strconv"
	"time"
)

// A time is an extension of this type: its seconds since 1970 (8 bytes), its
// nanoseconds (4 bytes), and if it is not in UTC its offset in seconds (4 bytes)
// and the abbreviation of its zone. MessagePack's own timestamp (type -1) has no
// zone; it is read as UTC.
const (
	extTime      = 1
	extTimestamp = 0xff
	instantSize  = 12
	zonedSize    = instantSize + 4
)

func writeTime(e *encoder, v reflect.Value) error {
	t, ok := reflect.TypeAssert[time.Time](v)
	if !ok {
		return unsupported(v.Type(), v.Type(), "do not embed it unexported")
	}
	size, abbreviation, offset := instantSize, "", 0
	if t.Location() != time.UTC {
		abbreviation, offset = t.Zone()
		size = zonedSize + len(abbreviation)
	}
	if err := e.length(size, ofExt); err != nil {
		return err
	}
	e.out = append(e.out, extTime)
	e.out = binary.BigEndian.AppendUint64(e.out, uint64(t.Unix()))       //nolint:gosec // two's complement
	e.out = binary.BigEndian.AppendUint32(e.out, uint32(t.Nanosecond())) //nolint:gosec // below 1e9
	if size > instantSize {
		e.out = append(binary.BigEndian.AppendUint32(e.out, uint32(offset)), abbreviation...)
	}
	return nil
}

func readTime(d *decoder, v reflect.Value) error {
	form := d.data[0]
	if (form < 0xc7 || form > 0xc9) && (form < 0xd4 || form > 0xd8) {
		return d.mismatch(v)
	}
	ext := d.body()
	kind, body := ext[0], ext[1:]
	var (
		sec, nsec int64
		zone      []byte
	)
	switch n := len(body); {
	case kind == extTime && (n == instantSize || n >= zonedSize):
		sec = int64(binary.BigEndian.Uint64(body)) //nolint:gosec // two's complement
		nsec = int64(binary.BigEndian.Uint32(body[8:]))
		zone = body[instantSize:]
	case kind == extTimestamp && n == 4:
		sec = int64(binary.BigEndian.Uint32(body))
	case kind == extTimestamp && n == 8:
		both := binary.BigEndian.Uint64(body)
		sec, nsec = int64(both&(1<<34-1)), int64(both>>34)
	case kind == extTimestamp && n == 12:
		nsec, sec = int64(binary.BigEndian.Uint32(body)), int64(binary.BigEndian.Uint64(body[4:])) //nolint:gosec // two's complement
	default:
		return mismatch("an extension "+strconv.Itoa(int(kind)), v.Type())
	}
	if nsec >= int64(time.Second) {
		return mismatch("a time of too many nanoseconds", v.Type())
	}
	t := time.Unix(sec, nsec)
	v.Set(reflect.ValueOf(t.In(d.location(t, zone))))
	return nil
}

// location returns the location of t that is stored as zone: the local one
// where that is what t would have there, else one of that offset alone.
func (d *decoder) location(t time.Time, zone []byte) *time.Location {
	if len(zone) == 0 {
		return time.UTC
	}
	offset, abbreviation := int(int32(binary.BigEndian.Uint32(zone))), zone[4:] //nolint:gosec // two's complement
	if name, here := t.Zone(); here == offset && name == string(abbreviation) {
		return time.Local //nolint:gosmopolitan // it has to be what it was
	}
	if d.zone != nil {
		if name, there := t.In(d.zone).Zone(); there == offset && name == string(abbreviation) {
			return d.zone // the times of one value mostly have one zone
		}
	}
	d.zone = time.FixedZone(string(abbreviation), offset)
	return d.zone
}
