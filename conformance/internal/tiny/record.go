package tiny

import (
	"time"

	"github.com/idem-go/idem/driver"
)

// never is later than any time that a record is looked at.
var never = time.Unix(1<<55, 0)

func after(t time.Time, d time.Duration) time.Time {
	if d == driver.RetainForever {
		return never
	}
	return t.Add(driver.RoundUp(d, Precision))
}

func left(now, t time.Time) time.Duration {
	if t.Equal(never) {
		return driver.RetainForever
	}
	return max(t.Sub(now), 0)
}

// ended is when the terminal transition was, also that by a lapse.
func (r Record) ended() time.Time {
	if r.State == driver.StateClaimed {
		return r.LeaseEnd
	}
	return r.EndedAt
}

// At is the state that the record has now, and when that ends. State 0: the
// key is free.
func (r Record) At(now time.Time) (driver.State, time.Time) {
	state := r.State
	switch {
	case state == 0:
		return 0, never
	case state == driver.StateClaimed && (now.Before(r.LeaseEnd) || r.OnLapse == driver.TakeOver):
		return state, r.LeaseEnd
	case state == driver.StateClaimed:
		state = driver.StateUncertain
	}
	end := after(r.ended(), r.Retention)
	if now.Before(end) {
		return state, end
	}
	if end = after(end, r.Tombstone); now.Before(end) {
		return driver.StateExpired, end
	}
	return 0, never
}

// over reports whether the record may be deleted.
func (r Record) over(now time.Time) bool {
	state, end := r.At(now)
	if state != 0 && (state != driver.StateClaimed || now.Before(end)) {
		return false
	}
	return now.Sub(r.ended()) > driver.FenceMemory
}
