package idemmemory

import (
	"time"

	"github.com/idem-go/idem/driver"
)

// record is what the store keeps for a key. Its times carry the monotonic
// clock, so a step of the wall clock neither ends nor prolongs a lease.
type record struct {
	key         driver.Key
	token       driver.Token // zero: no owner (any more)
	fence       int64
	generation  int64
	attempt     int
	format      int
	fingerprint []byte
	outcome     []byte

	state     driver.State // as written; never StateExpired, see at
	onLapse   driver.OnLapse
	guarantee driver.Guarantee
	tookOver  bool

	claimedAt time.Time
	// end is the lease's end while claimed, else the terminal transition. All
	// that a record is kept for counts from here, also after a lapse.
	end       time.Time
	retention time.Duration // of a stub: its keep
	tombstone time.Duration

	// Of the eviction, see evict.go.
	due        time.Time
	index      int
	class      class
	prev, next *record
}

// never is later than any instant that a record is judged at.
var never = time.Unix(1<<55, 0)

func after(t time.Time, d time.Duration) time.Time {
	if d == driver.RetainForever {
		return never
	}
	return t.Add(driver.RoundUp(d, precision))
}

// left is how long it is until t; [driver.RetainForever] if t is never.
func left(now, t time.Time) time.Duration {
	if t.Equal(never) {
		return driver.RetainForever
	}
	return max(t.Sub(now), 0)
}

// at is what the record is at an instant, and until when it is that if nobody
// touches it. State 0: it is past everything it was kept for.
func (r *record) at(now time.Time) (state driver.State, until time.Time) {
	state = r.state
	switch {
	case state == driver.StateReleased:
		until = after(r.end, r.retention)
		if now.Before(until) {
			return state, until
		}
		return 0, never
	case state == driver.StateClaimed && (now.Before(r.end) || r.onLapse == driver.TakeOver):
		return state, r.end // in the past: lapsed
	case state == driver.StateClaimed:
		state = driver.StateUncertain
	}
	until = after(r.end, r.retention)
	if now.Before(until) {
		return state, until
	}
	until = after(until, r.tombstone)
	if now.Before(until) {
		return driver.StateExpired, until
	}
	return 0, never
}

// gone is when the record is purged. Its fence alone would not need it that
// long, since the store remembers the highest; the contract promises it.
func (r *record) gone() time.Time {
	t := r.end.Add(driver.FenceMemory)
	if r.state == driver.StateClaimed && r.onLapse == driver.TakeOver {
		return t
	}
	if kept := after(after(r.end, r.retention), r.tombstone); kept.After(t) {
		return kept
	}
	return t
}

// visible is at, but state 0 also for a lease that lapsed so long ago that only
// a claim still sees it.
func (r *record) visible(now time.Time) (state driver.State, until time.Time) {
	state, until = r.at(now)
	if state == driver.StateClaimed && lapsedLongAgo(now, until) {
		return 0, never
	}
	return state, until
}

// lapsedLongAgo reports whether a lease ended so long ago that any claim may take it over.
func lapsedLongAgo(now, end time.Time) bool {
	return now.Sub(end) >= driver.FenceMemory
}

// shown is a time as it leaves the store: without the monotonic clock, which
// would make equal instants differ.
func shown(t time.Time) time.Time { return t.Round(0).UTC() }
