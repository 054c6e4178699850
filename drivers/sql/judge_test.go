package idemsql

import (
	"bytes"
	"database/sql"
	"errors"
	"testing"

	"github.com/idem-go/idem/driver"
)

func us(v int64) sql.NullInt64 { return sql.NullInt64{Int64: v, Valid: true} }

// The cases that take ten minutes of a real clock, and the ticks at which one
// thing ends and the next begins.
func TestJudge(t *testing.T) {
	t.Parallel()
	const now, unit = int64(1_700_000_000_000_000), int64(1000)
	var mine, theirs driver.Token
	mine[0], theirs[0] = 1, 2
	a, b := []byte("v001a"), []byte("v001b")
	base := func(state driver.State, change func(r *record)) *record {
		r := &record{
			format: 1, state: state, guarantee: 1, onLapse: driver.TakeOver, token: theirs[:], fence: 7,
			generation: 5, attempt: 2, fingerprint: a, claimedAt: now, retention: us(0), tombstone: us(0), now: now,
			unit: sqlite.unit,
		}
		if state == driver.StateCompleted {
			r.outcome = []byte("x")
		}
		change(r)
		return r
	}
	claimed := func(end int64) func(*record) { return func(r *record) { r.leaseEnd = us(end) } }
	guard := func(end int64, retention sql.NullInt64) func(*record) {
		return func(r *record) {
			r.leaseEnd, r.onLapse, r.retention = us(end), driver.Uncertain, retention
		}
	}
	ended := func(at, retention, tombstone int64) func(*record) {
		return func(r *record) { r.endedAt, r.retention, r.tombstone = us(at), us(retention), us(tombstone) }
	}
	const take = driver.Decision(0)
	for what, c := range map[string]struct {
		r           *record
		fingerprint []byte
		over        int64
		want        driver.Decision
		fresh, took bool
		keeps       []byte
	}{
		"a live lease":                  {base(driver.StateClaimed, claimed(now+unit)), a, 0, driver.DecisionInFlight, false, false, nil},
		"a lease in its last tick":      {base(driver.StateClaimed, claimed(now)), a, 0, driver.DecisionInFlight, false, false, nil},
		"a lapsed lease":                {base(driver.StateClaimed, claimed(now-unit)), a, 0, take, false, true, a},
		"lapsed, without a fingerprint": {base(driver.StateClaimed, claimed(now-unit)), nil, 0, take, false, true, a},
		"lapsed, another request":       {base(driver.StateClaimed, claimed(now-unit)), b, 0, driver.DecisionInFlight, false, false, nil},
		"lapsed, FenceMemory's last":    {base(driver.StateClaimed, claimed(now-fenceMemory)), b, 0, driver.DecisionInFlight, false, false, nil},
		"lapsed before FenceMemory":     {base(driver.StateClaimed, claimed(now-fenceMemory-unit)), b, 0, take, false, true, b},
		"a lapsed guard":                {base(driver.StateClaimed, guard(now-unit, sql.NullInt64{})), a, 0, driver.DecisionUncertain, false, false, nil},
		"a lapsed guard, reconciled":    {base(driver.StateClaimed, guard(now-unit, sql.NullInt64{})), b, 7, take, false, true, b},
		"a live guard, reconciled":      {base(driver.StateClaimed, guard(now, sql.NullInt64{})), a, 7, driver.DecisionInFlight, false, false, nil},
		"uncertain, the wrong fence":    {base(driver.StateUncertain, ended(now, 60, 0)), a, 6, driver.DecisionUncertain, false, false, nil},
		"uncertain, reconciled":         {base(driver.StateUncertain, ended(now, 60, 0)), nil, 7, take, false, true, a},
		"a guard past its retention":    {base(driver.StateClaimed, guard(now-2*unit, us(unit))), b, 0, take, true, false, b},
		"completed":                     {base(driver.StateCompleted, ended(now-unit, unit, 0)), b, 0, driver.DecisionCompleted, false, false, nil},
		"completed, past its retention": {base(driver.StateCompleted, ended(now-2*unit, unit, 0)), b, 0, take, true, false, b},
		"completed, with a tombstone":   {base(driver.StateCompleted, ended(now-2*unit, unit, unit)), b, 0, driver.DecisionExpired, false, false, nil},
		"completed, past its tombstone": {base(driver.StateCompleted, ended(now-3*unit, unit, unit)), b, 0, take, true, false, b},
		"a stub":                        {base(driver.StateReleased, ended(now-unit, unit, 0)), b, 0, take, false, false, b},
		"a stub past its keep":          {base(driver.StateReleased, ended(now-2*unit, unit, 0)), b, 0, take, true, false, b},
	} {
		p := &driver.ClaimParams{Token: mine, Fingerprint: c.fingerprint, Over: c.over, Format: 1}
		v, err := judge(c.r, p)
		if err != nil || v.answer.Decision != c.want {
			t.Errorf("%s: %v, %v, want %v", what, v.answer.Decision, err, c.want)
			continue
		}
		if c.want != take {
			if live := v.answer.LeaseLeft > 0 || v.answer.LifeLeft > 0; !live && c.want != driver.DecisionInFlight {
				t.Errorf("%s: nothing is left of it: %+v", what, v.answer)
			}
			continue
		}
		if v.fresh != c.fresh || v.tookOver != c.took || !bytes.Equal(v.fingerprint, c.keeps) {
			t.Errorf("%s: fresh %v, took over %v, keeps %q", what, v.fresh, v.tookOver, v.fingerprint)
		}
		if now <= v.from || now > v.until {
			t.Errorf("%s: the verdict does not hold when it is given: from %d until %d", what, v.from-now, v.until-now)
		}
		// The verdict must not hold at a time at which another one would be given.
		for _, at := range []int64{v.from, v.until + 1} {
			if at <= 0 || at == forever || v.until == forever && at != v.from {
				continue
			}
			other := *c.r
			other.now = at
			if w, err := judge(&other, p); err == nil && w.answer.Decision == take && w.fresh == v.fresh {
				t.Errorf("%s: the same verdict would be given at %d, but is said not to hold", what, at-now)
			}
		}
	}
}

func TestJudgeKnowsItsOwnToken(t *testing.T) {
	t.Parallel()
	var mine driver.Token
	mine[0] = 1
	r := record{
		format: 1, state: driver.StateClaimed, onLapse: driver.TakeOver, token: mine[:], fence: 7,
		leaseEnd: us(1), now: 100, unit: sqlite.unit,
	}
	p := &driver.ClaimParams{Token: mine, Format: 1}
	if v, err := judge(&r, p); err != nil || v.answer.Decision != driver.DecisionClaimed || !v.answer.Own {
		t.Errorf("its own lapsed claim answers %+v, %v", v.answer, err)
	}
	r.state, r.leaseEnd, r.endedAt = driver.StateReleased, sql.NullInt64{}, us(1)
	if _, err := judge(&r, p); !errors.Is(err, driver.ErrLost) {
		t.Errorf("the stub of its own release answers %v", err)
	}
}
