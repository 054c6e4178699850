package idemredis

import (
	"encoding/binary"
	"math"
	"strconv"
	"time"

	"github.com/idem-go/idem/driver"
)

// A record is one string: this head, the fingerprint, the outcome. Packed it
// takes a third of the memory of a hash (docs/redis.md). All
// numbers are unsigned and big-endian; times are in µs since 1970, durations in
// µs. The scripts read and write it (LAYOUT in judge.lua); a layout with
// another version byte is left alone.
//
//	 0  "idem"             20  token
//	 4  version, 1         36  fence
//	 5  state              44  generation
//	 6  OnLapse            52  claimed at
//	 7  guarantee          60  lease's end, or terminal transition
//	 8  took over          68  retention; of a stub: its keep
//	 9  watched            76  tombstone
//	10  fingerprint's length
//	12  attempt
//	16  format
const (
	magic    = "idem"
	layout   = 1
	headSize = 84
)

// Times and durations that never end, as the scripts know them.
const (
	never   = 1 << 53 // the time
	forever = -1      // the duration
)

// record is what a script returned of one. The script has judged it to be
// sound.
type record struct {
	state       driver.State // as written
	onLapse     driver.OnLapse
	guarantee   driver.Guarantee
	tookOver    bool
	attempt     int
	format      int
	token       driver.Token
	fence       int64
	generation  int64
	claimedAt   int64
	end         int64
	retention   int64
	tombstone   int64
	fingerprint []byte
	outcome     []byte
}

// decode reads a record; ok is false if it is none.
func decode(b []byte) (r record, ok bool) {
	if len(b) < headSize {
		return record{}, false
	}
	n := headSize + int(binary.BigEndian.Uint16(b[10:]))
	if len(b) < n {
		return record{}, false
	}
	r = record{
		state:       driver.State(b[5]),
		onLapse:     driver.OnLapse(b[6]),
		guarantee:   driver.Guarantee(b[7]),
		tookOver:    b[8] != 0,
		attempt:     int(binary.BigEndian.Uint32(b[12:])),
		format:      int(binary.BigEndian.Uint32(b[16:])),
		token:       driver.Token(b[20:36]),
		fence:       number(b[36:]),
		generation:  number(b[44:]),
		claimedAt:   number(b[52:]),
		end:         number(b[60:]),
		retention:   number(b[68:]),
		tombstone:   number(b[76:]),
		fingerprint: b[headSize:n:n],
		outcome:     b[n:],
	}
	return r, true
}

func number(b []byte) int64 {
	return int64(binary.BigEndian.Uint64(b)) //nolint:gosec // as it was written
}

// micros is a duration as the scripts take it, rounded up.
func micros(d time.Duration) string {
	if d == driver.RetainForever {
		return strconv.Itoa(forever)
	}
	return strconv.FormatInt(int64(driver.RoundUp(d, precision)/precision), 10)
}

// left is how long it is from now until a time.
func left(now, until int64) time.Duration {
	d := until - now
	if until >= never || d > math.MaxInt64/int64(precision) {
		return driver.RetainForever
	}
	return time.Duration(max(d, 0)) * precision
}

func clock(t int64) time.Time { return time.UnixMicro(t).UTC() }
