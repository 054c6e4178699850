package idemsql

import (
	"database/sql"
	"fmt"
	"math"
	"time"

	"github.com/idem-go/idem/driver"
)

// forever is a time on the backend's clock that never comes.
const forever = math.MaxInt64

// fenceMemory is [driver.FenceMemory] in µs.
const fenceMemory = int64(driver.FenceMemory / time.Microsecond)

// record is a row, and the clock when it was read. Times and durations are in µs.
type record struct {
	format               int64
	state                driver.State
	guarantee            driver.Guarantee
	onLapse              driver.OnLapse
	token                []byte
	fence, generation    int64
	attempt              int
	tookOver             bool
	fingerprint          []byte
	claimedAt            int64
	leaseEnd, endedAt    sql.NullInt64
	retention, tombstone sql.NullInt64 // NULL: for ever
	outcome              []byte
	now                  int64
	garbled              bool // something in it is no number

	unit time.Duration // of the backend's clock
}

// check returns [driver.ErrCorrupt] if no version of this package can have
// written the record.
func (r *record) check() error {
	var bad string
	switch claimed := r.state == driver.StateClaimed; {
	case r.garbled:
		bad = "not made of numbers"
	case !claimed && r.state != driver.StateCompleted && r.state != driver.StateUncertain && r.state != driver.StateReleased:
		bad = "in no known state"
	case claimed && !r.leaseEnd.Valid:
		bad = "claimed without a lease end"
	case !claimed && !r.endedAt.Valid:
		bad = "without the time when it ended"
	case r.state == driver.StateCompleted && len(r.outcome) == 0:
		bad = "completed without an outcome"
	case r.onLapse != driver.TakeOver && r.onLapse != driver.Uncertain:
		bad = "without a meaning of its lease's end"
	case len(r.token) != len(driver.Token{}) || r.fence <= 0 || r.format <= 0:
		bad = "without a token, fence or format"
	default:
		return nil
	}
	return fmt.Errorf("%w: it is %s", driver.ErrCorrupt, bad)
}

func (r *record) owner() driver.Token {
	var t driver.Token
	copy(t[:], r.token)
	return t
}

// base is the time that all a record is kept for counts from: the lease's end
// while it is claimed, else when it came to be what it is.
func (r *record) base() int64 {
	if r.state == driver.StateClaimed {
		return r.leaseEnd.Int64
	}
	return r.endedAt.Int64
}

// A time is over when the clock is past it. The clock's unit is part of the
// time: a lease of 300 ms that began within a millisecond would otherwise end
// before it has lasted 300 ms.

// at is what the record is on the clock that it was read with, and until when.
// State 0: it is past everything that it was kept for, and its key is free. A
// lapsed lease with [driver.TakeOver] is claimed, until a time that is over.
func (r *record) at() (state driver.State, until int64) {
	state = r.state
	switch {
	case state == driver.StateClaimed && (r.now <= r.leaseEnd.Int64 || r.onLapse == driver.TakeOver):
		return state, r.leaseEnd.Int64
	case state == driver.StateClaimed:
		state = driver.StateUncertain
	}
	until = later(r.base(), r.retention)
	if r.now <= until {
		return state, until
	}
	if state == driver.StateReleased {
		return 0, forever
	}
	until = later(until, r.tombstone)
	if r.now <= until {
		return driver.StateExpired, until
	}
	return 0, forever
}

// visible is at, but 0 also for a lease that lapsed so long ago that it may be
// purged at any time.
func (r *record) visible() (state driver.State, until int64) {
	state, until = r.at()
	if state == driver.StateClaimed && r.now > until+fenceMemory {
		return 0, forever
	}
	return state, until
}

// lapsed reports whether the record is claimed by a lease that is over.
func (r *record) lapsed() bool {
	return r.state == driver.StateClaimed && r.now > r.leaseEnd.Int64
}

func later(t int64, d sql.NullInt64) int64 {
	if !d.Valid || t == forever {
		return forever
	}
	return t + d.Int64
}

// left is how long it is until t is over: above 0 to its last tick, then 0.
func (r *record) left(t int64) time.Duration {
	switch {
	case t == forever:
		return driver.RetainForever
	case r.now > t:
		return 0
	}
	return max(duration(t-r.now), r.unit)
}

// clock turns µs into a time; 0, which a dialect answers that cannot tell, into none.
func clock(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// micros turns a duration into µs as they are stored: nil for one without an end.
func (d *dialect) micros(t time.Duration) any {
	if t == driver.RetainForever {
		return nil
	}
	return d.us(t)
}

// keep is how long a record stays after what its retention and tombstone count
// from, in µs: never less than [driver.FenceMemory]; nil: for ever.
func (d *dialect) keep(retention, tombstone time.Duration) any {
	if retention == driver.RetainForever || tombstone == driver.RetainForever {
		return nil
	}
	return max(d.us(retention)+d.us(tombstone), fenceMemory)
}

// us turns a duration into µs, rounded up to the clock's unit.
func (d *dialect) us(t time.Duration) int64 {
	return int64(driver.RoundUp(t, d.unit) / time.Microsecond)
}

func duration(us int64) time.Duration {
	return time.Duration(us) * time.Microsecond
}
