package histories

import (
	"time"

	"github.com/idem-go/idem/driver"
)

// twice is how far two readings of the backend's clock in one call may lie
// apart, on a busy machine.
const twice = 5 * time.Millisecond

// model is the contract of [driver.Driver] for one key whose records do not expire.
type model struct {
	precision time.Duration // of the backend's clock
}

// state is what the record of a key is, as far as the answers have told. It is comparable.
type state struct {
	is      driver.State // zero: there is no record
	token   byte
	onLapse driver.OnLapse
	outcome string

	fingerprint string
	fence       int64 // 0: not told yet
	floor       int64 // the last fence that was told; later ones are higher
	generation  int64 // 0: not told yet
	attempt     int

	now         time.Duration // it is at least so late
	first, last time.Duration // the lease ends between these; last may be never
	end         int64         // when it ends on the backend's clock in µs; 0: not told
}

// step returns the states in which the record may be after the call, if it
// gave that answer. There are none if the contract does not allow it, and
// several if there was no answer.
func (m model) step(s state, c call, a answer) []state {
	s.now = max(s.now, c.from)
	if s.now > c.to {
		return nil
	}
	var next []state
	if a.unknown() {
		next = append(next, s) // it did not happen
	}
	if c.method == claims {
		return append(next, m.claim(s, c, a)...)
	}
	after, ok := m.settle(s, c, a)
	if ok {
		next = append(next, after)
	}
	return next
}

// steps is step from any of some states.
func (m model) steps(states []state, c call, a answer) (next []state) {
	for _, s := range states {
		next = append(next, m.step(s, c, a)...)
	}
	return next
}

// settle is a call of the owner.
func (m model) settle(s state, c call, a answer) (state, bool) {
	owns := s.token == c.token
	claimed := owns && s.is == driver.StateClaimed
	already := owns && (c.method == completes || c.method == doubts) && (s.is == driver.StateCompleted || s.is == driver.StateUncertain)
	released := owns && c.method == releases && s.is == driver.StateReleased
	if ok := claimed || already || released; !a.unknown() && (ok == a.lost || ok && already != a.already) || a.unknown() && !claimed {
		return s, false
	}
	if !claimed {
		return s, true
	}
	switch c.method {
	case completes:
		s.is, s.outcome = driver.StateCompleted, c.outcome
	case doubts:
		s.is = driver.StateUncertain
	case releases:
		s.is, s.fingerprint = driver.StateReleased, ""
	case renews:
		first, last := m.lease(c)
		s.first, s.last, s.end = max(s.first, first), max(s.last, last), 0
		if !a.unknown() && a.left < c.lease-(c.to-c.from)-m.blur() {
			return s, false
		}
	case claims:
	}
	return s, true
}

// lease is between when and when a lease ends that the call sets. It counts
// from a moment of the call, which may be before others see what it does.
func (m model) lease(c call) (first, last time.Duration) {
	first = c.from + c.lease - 2*m.precision // a clock that is cut off to its precision
	if c.to == never {
		return first, never
	}
	return first, c.to + c.lease + 2*m.precision
}

// blur is how exact a duration is that the driver tells.
func (m model) blur() time.Duration { return twice + 2*m.precision }

// lapsed is the state if the lease has ended by now, and whether it can have.
func (s state) lapsed(c call) (state, bool) {
	s.now = max(s.now, s.first)
	return s, s.now <= c.to
}

// live reports whether the lease may last still.
func (s state) live(c call) bool { return c.from < s.last }

// told compares what an answer says of the record with what is known, and
// learns what is not.
func (s state) told(r driver.ClaimResult) (state, bool) {
	if r.Fence == 0 || r.Attempt != s.attempt || s.fence == 0 && r.Fence <= s.floor {
		return s, false
	}
	if s.attempt == 1 && s.generation == 0 {
		s.generation = r.Fence // a generation begins with its first fence
	}
	if s.fence == 0 {
		s.fence, s.floor = r.Fence, r.Fence
	}
	if s.generation == 0 {
		s.generation = r.Generation
	}
	return s, r.Fence == s.fence && r.Generation == s.generation
}
