package idemsql

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/idem-go/idem/driver"
)

func newStore(t *testing.T) *Store {
	t.Helper()
	db := sqlx.MustOpen("sqlite", SQLiteDSN(filepath.Join(t.TempDir(), "x.db")))
	t.Cleanup(func() { _ = db.Close() })
	s, err := New(db)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// Rule 1: a read never grants. What was read must still be so, by the clock of
// the statement that takes the record.
func TestTakeChecksTheVerdictAgain(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	old := driver.ClaimParams{
		Key: driver.Key{Scope: "s", ID: "x"}, Token: driver.Token{1}, Lease: time.Millisecond,
		OnLapse: driver.TakeOver, Guarantee: driver.AtLeastOnce, Format: 1,
	}
	if _, err := s.Claim(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Millisecond)
	next := old
	next.Token = driver.Token{2}
	a := s.lockArgs(&next)
	in := session{Store: s}
	seen, err := in.read(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	v, err := judge(seen, &next)
	if err != nil || v.answer.Decision != 0 {
		t.Fatalf("the lapsed lease answers %+v, %v", v.answer, err)
	}
	for what, change := range map[string]func(r *record, v *verdict){
		"another fence":           func(r *record, _ *verdict) { r.fence++ },
		"another state":           func(r *record, _ *verdict) { r.state = driver.StateReleased },
		"another lease end":       func(r *record, _ *verdict) { r.leaseEnd.Int64-- },
		"a verdict of the future": func(r *record, v *verdict) { v.from = r.now + int64(time.Hour/time.Microsecond) },
		"a verdict that is over":  func(r *record, v *verdict) { v.until = r.now - 1000 },
	} {
		r, w := *seen, v
		change(&r, &w)
		if res, err := in.take(t.Context(), &next, a, &r, w); err != nil || res.Decision != 0 {
			t.Errorf("%s: the record is taken: %+v, %v", what, res, err)
		}
	}
	if res, err := in.take(t.Context(), &next, a, seen, v); err != nil || res.Decision != driver.DecisionClaimed {
		t.Errorf("what was read is still so, but the record is not taken: %+v, %v", res, err)
	}
}

// With a limit of three bytes, since a billion would take a while.
func TestAnOutcomeThatTheDatabaseCannotHoldIsTooLarge(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	small := *s.dialect
	small.maxOutcome = 3
	s.dialect = &small
	p := driver.ClaimParams{
		Key: driver.Key{Scope: "s", ID: "x"}, Token: driver.Token{1}, Lease: time.Minute,
		OnLapse: driver.TakeOver, Guarantee: driver.AtLeastOnce, Format: 1,
	}
	if _, err := s.Claim(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	c := driver.CompleteParams{
		Key: p.Key, Token: p.Token, To: driver.StateCompleted, Outcome: []byte("1234"), Retention: time.Hour, Format: 1,
	}
	if _, err := s.Complete(t.Context(), c); !errors.Is(err, driver.ErrTooLarge) {
		t.Errorf("%v is not ErrTooLarge", err)
	}
	c.Outcome = []byte("123")
	if _, err := s.Complete(t.Context(), c); err != nil {
		t.Errorf("the claim has gone with the outcome that was too large: %v", err)
	}
}
