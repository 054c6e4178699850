package histories

import (
	"time"

	"github.com/idem-go/idem/driver"
)

// claim returns the states after a claim: one for each thing that the clock
// may have made of the record.
func (m model) claim(s state, c call, a answer) []state {
	switch {
	case s.is == 0:
		return m.grant(s, c, a, false)
	case s.is == driver.StateReleased && s.token == c.token:
		return only(s, a.lost)
	case s.is == driver.StateReleased:
		return m.grant(s, c, a, false)
	case a.lost || a.unknown() && s.is != driver.StateClaimed:
		return nil
	case s.is == driver.StateCompleted:
		r := a.claim
		after, ok := s.told(r)
		return only(after, ok && r.Decision == driver.DecisionCompleted && string(r.Outcome) == s.outcome && r.Own == (s.token == c.token))
	case s.is == driver.StateUncertain:
		after, ok := s.told(a.claim)
		return only(after, ok && a.claim.Decision == driver.DecisionUncertain)
	case s.token == c.token:
		return m.own(s, c, a)
	}
	return append(m.live(s, c, a), m.late(s, c, a)...)
}

func only(s state, ok bool) []state {
	if !ok {
		return nil
	}
	return []state{s}
}

// own is a claim that is sent again.
func (m model) own(s state, c call, a answer) []state {
	if a.unknown() {
		return nil // it changes nothing
	}
	r := a.claim
	after, ok := s.told(r)
	ok = ok && r.Decision == driver.DecisionClaimed && r.Own && r.LeaseLeft >= s.first-c.to-m.blur()
	return only(after, ok && (s.last == never || r.LeaseLeft <= max(0, s.last-c.from)+m.blur()))
}

// live is a claim of another caller while the lease lasts.
func (m model) live(s state, c call, a answer) []state {
	if a.unknown() || !s.live(c) {
		return nil
	}
	r := a.claim
	after, ok := s.told(r)
	ok = ok && r.Decision == driver.DecisionInFlight && !r.Own
	if s.last != never {
		ok = ok && r.LeaseLeft <= s.last-c.from+m.blur()
	}
	if decided := micros(r.DecidedAt); decided != 0 && s.end != 0 {
		ok = ok && decided < s.end+m.blur().Microseconds()
	}
	if after.end == 0 && r.LeaseLeft > 0 {
		after.end = endOf(r)
	}
	return only(after, ok)
}

// late is a claim of another caller after the lease has ended.
func (m model) late(s state, c call, a answer) []state {
	s, ok := s.lapsed(c)
	switch {
	case !ok:
		return nil
	case s.onLapse == driver.Uncertain && !a.unknown():
		after, ok := s.told(a.claim)
		return only(after, ok && a.claim.Decision == driver.DecisionUncertain && !a.claim.Own)
	case s.onLapse == driver.Uncertain:
		return nil
	case driver.SameFingerprint([]byte(s.fingerprint), []byte(c.fingerprint)):
		return m.grant(s, c, a, true)
	case !a.unknown():
		after, ok := s.told(a.claim)
		return only(after, ok && a.claim.Decision == driver.DecisionInFlight && a.claim.LeaseLeft == 0)
	}
	return nil
}

// grant is a claim that takes the key.
func (m model) grant(s state, c call, a answer, tookOver bool) []state {
	end := s.end
	s.first, s.last = m.lease(c)
	s.token, s.onLapse, s.outcome, s.fence, s.end = c.token, c.onLapse, "", 0, 0
	if s.is == 0 {
		s.generation, s.attempt = 0, 0
	}
	s.attempt++
	s.is = driver.StateClaimed
	if c.fingerprint != "" {
		s.fingerprint = c.fingerprint
	}
	if a.unknown() {
		return []state{s}
	}
	r := a.claim
	if a.lost || r.Decision != driver.DecisionClaimed || r.Own || r.TookOver != tookOver {
		return nil
	}
	if r.LeaseLeft < c.lease-(c.to-c.from)-m.blur() || r.LeaseLeft > c.lease+m.blur() {
		return nil
	}
	if decided := micros(r.DecidedAt); tookOver && decided != 0 && end != 0 && decided < end-m.blur().Microseconds() {
		return nil
	}
	s.end = endOf(r)
	after, ok := s.told(r)
	return only(after, ok)
}

// endOf is when the lease ends on the backend's clock in µs; 0: not told.
func endOf(r driver.ClaimResult) int64 {
	if r.DecidedAt.IsZero() {
		return 0
	}
	return r.DecidedAt.Add(r.LeaseLeft).UnixMicro()
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}
