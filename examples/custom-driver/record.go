package boltdriver

import (
	"fmt"
	"time"

	"github.com/idem-go/idem/driver"
)

// precision is that of fences, so that a lease is never finer than they are.
const precision = time.Microsecond

// record is what is stored under a key.
type record struct {
	Token       driver.Token
	State       driver.State // as written: what a lapse or an end makes of it is not
	Guarantee   driver.Guarantee
	OnLapse     driver.OnLapse
	Fence       int64
	Generation  int64
	Attempt     int
	Format      int
	Fingerprint []byte
	Outcome     []byte
	ClaimedAt   time.Time
	LeaseEnd    time.Time
	EndedAt     time.Time
	Retention   time.Duration
	Tombstone   time.Duration
}

// check refuses what this driver cannot have written.
func (r record) check() error {
	if r.State == driver.StateClaimed && r.LeaseEnd.IsZero() {
		return fmt.Errorf("%w: claimed without a lease end", driver.ErrCorrupt)
	}
	return nil
}

// claim decides a claim, and returns the record that it leaves.
func (r record) claim(now time.Time, p driver.ClaimParams) (record, driver.ClaimResult, error) {
	state, end := r.at(now)
	own := r.Token == p.Token
	switch {
	case r.Format > p.Format:
		return r, driver.ClaimResult{}, driver.ErrNewerFormat
	case own && r.State == driver.StateClaimed:
		res := r.answer(now, driver.DecisionClaimed)
		res.Own = true
		return r, res, nil
	case own && r.State == driver.StateReleased:
		return r, driver.ClaimResult{}, driver.ErrLost
	case state == 0:
		r, res := (record{Fence: r.Fence}).grant(now, p)
		return r, res, nil
	case state == driver.StateReleased,
		state == driver.StateUncertain && p.Over == r.Fence,
		state == driver.StateClaimed && !now.Before(end) &&
			(driver.SameFingerprint(r.Fingerprint, p.Fingerprint) || now.Sub(end) > driver.FenceMemory):
		r, res := r.grant(now, p)
		return r, res, nil
	}
	res := r.answer(now, decisions[state])
	res.Own = own
	return r, res, nil
}

var decisions = map[driver.State]driver.Decision{
	driver.StateClaimed:   driver.DecisionInFlight,
	driver.StateCompleted: driver.DecisionCompleted,
	driver.StateUncertain: driver.DecisionUncertain,
	driver.StateExpired:   driver.DecisionExpired,
}

// grant gives the record to the claim.
func (r record) grant(now time.Time, p driver.ClaimParams) (record, driver.ClaimResult) {
	next := record{
		Token: p.Token, State: driver.StateClaimed, Guarantee: p.Guarantee, OnLapse: p.OnLapse,
		Fence: max(r.Fence+1, now.UnixMicro()), Generation: r.Generation, Attempt: r.Attempt + 1,
		Format: p.Format, Fingerprint: p.Fingerprint,
		ClaimedAt: now, LeaseEnd: now.Add(driver.RoundUp(p.Lease, precision)),
		Retention: p.Retention, Tombstone: p.Tombstone,
	}
	if r.State == 0 {
		next.Generation = next.Fence
	}
	if len(next.Fingerprint) == 0 {
		next.Fingerprint = r.Fingerprint
	}
	res := next.answer(now, driver.DecisionClaimed)
	res.Fingerprint = r.Fingerprint
	res.TookOver = r.State != 0 && r.State != driver.StateReleased
	return next, res
}

func (r record) answer(now time.Time, d driver.Decision) driver.ClaimResult {
	res := driver.ClaimResult{
		Decision: d, Fence: r.Fence, Generation: r.Generation, Attempt: r.Attempt, Fingerprint: r.Fingerprint,
		OnLapse: r.OnLapse, Format: r.Format, ClaimedAt: r.ClaimedAt, DecidedAt: now,
	}
	if d == driver.DecisionClaimed || d == driver.DecisionInFlight {
		res.LeaseLeft = left(now, r.LeaseEnd)
		return res
	}
	if d == driver.DecisionCompleted {
		res.Outcome = r.Outcome
	}
	_, end := r.at(now)
	res.LifeLeft, res.CompletedAt = left(now, end), r.ended()
	return res
}

// at is what the record is now, and until when. 0: the key is free.
func (r record) at(now time.Time) (driver.State, time.Time) {
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

// ended is when the terminal transition was, also that by a lapse.
func (r record) ended() time.Time {
	if r.State == driver.StateClaimed {
		return r.LeaseEnd
	}
	return r.EndedAt
}

// never is later than any time that a record is looked at.
var never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

func after(t time.Time, d time.Duration) time.Time {
	if d == driver.RetainForever {
		return never
	}
	return t.Add(driver.RoundUp(d, precision))
}

func left(now, t time.Time) time.Duration {
	if t.Equal(never) {
		return driver.RetainForever
	}
	return max(t.Sub(now), 0)
}
