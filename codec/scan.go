package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// maxDepth is how deep a value may nest in MessagePack. Deeper ones are most
// likely cycles, on which an encoder would go on until the stack is used up.
const maxDepth = 1000

var (
	errTooDeep   = fmt.Errorf("codec: nested more than %d deep (a cycle?)", maxDepth)
	errMalformed = errors.New("codec: malformed MessagePack")
)

// scan returns what follows the first MessagePack value of data. It allocates
// nothing: a decoder allocates what the lengths in data announce, so they are
// held against what is there before it is asked.
func scan(data []byte, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	if len(data) == 0 {
		return nil, errMalformed
	}
	form, rest := data[0], data[1:]
	h := headers[form]
	if !h.known || len(rest) < h.width {
		return nil, errMalformed
	}
	n := uint64(h.fixed) //nolint:gosec // a few bytes
	if h.width > 0 {
		var wide [8]byte
		copy(wide[8-h.width:], rest)
		n, rest = n+binary.BigEndian.Uint64(wide[:]), rest[h.width:]
	}
	if n > uint64(len(rest)) { // each value inside takes a byte at least
		return nil, errMalformed
	}
	if h.values == 0 {
		return rest[n:], nil
	}
	for range n * h.values {
		var err error
		if rest, err = scan(rest, depth+1); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// hidesMap reports whether a scanned value has an extension that vmihailenco/msgpack
// would take for the head of a map that is not there: where it wants a map
// it skips an extension's head, and makes room for as many entries as the first
// bytes behind it announce. Timestamps are spared: they may begin with any byte.
func hidesMap(data []byte) bool {
	for len(data) > 0 {
		form := data[0]
		h := headers[form]
		n, at := h.fixed, 1+h.width
		for i, b := range data[1:at] {
			n += int(b) << (8 * (h.width - 1 - i))
		}
		if h.values > 0 {
			data = data[at:]
			continue
		}
		if body := data[at : at+n]; h.ext && body[0] != extTimestamp && len(body) > 1 && headers[body[1]].values == inMap {
			announced := uint64(0)
			for _, b := range body[2:min(len(body), 2+headers[body[1]].width)] {
				announced = announced<<8 | uint64(b)
			}
			if announced > uint64(len(data)) {
				return true
			}
		}
		data = data[at+n:]
	}
	return false
}

// header says what follows the first byte of a value: a big-endian length of
// width bytes, and that many and fixed more bytes, or values inside.
type header struct {
	known  bool
	width  int
	fixed  int
	values uint64 // inside, for each of the length; 0: it counts bytes
	ext    bool
}

var headers = func() (hs [256]header) {
	for b := range hs {
		switch {
		case b <= 0x7f, b >= 0xe0, b == 0xc0, b == 0xc2, b == 0xc3: // small integers, nil, booleans
			hs[b] = header{known: true}
		case b <= 0x8f: // maps
			hs[b] = header{known: true, fixed: b & 0x0f, values: 2}
		case b <= 0x9f: // arrays
			hs[b] = header{known: true, fixed: b & 0x0f, values: 1}
		case b <= 0xbf: // strings
			hs[b] = header{known: true, fixed: b & 0x1f}
		case b >= 0xca && b <= 0xd3: // numbers
			hs[b] = header{known: true, fixed: [...]int{4, 8, 1, 2, 4, 8, 1, 2, 4, 8}[b-0xca]}
		case b >= 0xd4 && b <= 0xd8: // extensions: a type and 1 to 16 bytes
			hs[b] = header{known: true, fixed: 1 + 1<<(b-0xd4), ext: true}
		}
	}
	for i, width := range [...]int{1, 2, 4} {
		hs[0xc4+i] = header{known: true, width: width}                      // bytes
		hs[0xc7+i] = header{known: true, width: width, fixed: 1, ext: true} // extensions
		hs[0xd9+i] = header{known: true, width: width}                      // strings
	}
	for i, width := range [...]int{2, 4} {
		hs[0xdc+i] = header{known: true, width: width, values: 1} // arrays
		hs[0xde+i] = header{known: true, width: width, values: 2} // maps
	}
	return hs
}()
