package idemsql_test

import (
	"context"
	"testing"
	"time"

	"github.com/idem-go/idem/driver"
	idemsql "github.com/idem-go/idem/drivers/sql"
)

// The cost table of the design, in statements.
func TestStatementsACall(t *testing.T) {
	t.Parallel()
	none := func(context.Context) error { return nil }
	for mode, want := range map[idemsql.ClaimMode]map[string]string{
		idemsql.Auto: {
			"claim":            "SELECT INSERT",
			"replay":           "SELECT",
			"inbox":            "BEGIN INSERT INSERT UPDATE COMMIT",
			"inbox's replay":   "SELECT", // the key was seen lately
			"joined":           "SAVEPOINT INSERT INSERT UPDATE RELEASE",
			"joined duplicate": "SELECT",
		},
		idemsql.ClaimFirst: {
			"claim":            "INSERT",
			"replay":           "INSERT SELECT",
			"inbox":            "BEGIN INSERT INSERT UPDATE COMMIT",
			"inbox's replay":   "BEGIN INSERT SELECT ROLLBACK",
			"joined":           "SAVEPOINT INSERT INSERT UPDATE RELEASE",
			"joined duplicate": "SAVEPOINT INSERT SELECT RELEASE",
		},
		idemsql.ReadFirst: {
			"claim":            "SELECT INSERT",
			"replay":           "SELECT",
			"inbox":            "SELECT BEGIN INSERT INSERT UPDATE COMMIT",
			"inbox's replay":   "SELECT",
			"joined":           "SELECT SAVEPOINT INSERT INSERT UPDATE RELEASE",
			"joined duplicate": "SELECT",
		},
	} {
		s, r := record(t, idemsql.WithClaimMode(mode))
		check := func(what string, f func()) {
			t.Helper()
			if got := r.of(f); got != want[what] {
				t.Errorf("%v, %s sends %q, want %q", mode, what, got, want[what])
			}
		}
		always := func(what, statements string, f func()) {
			t.Helper()
			if got := r.of(f); got != statements {
				t.Errorf("%v, %s sends %q, want %q", mode, what, got, statements)
			}
		}
		p := claimOf("lease")
		check("claim", func() { s.mustClaim(p, driver.DecisionClaimed) })
		always("a renewal", "UPDATE", func() {
			_, err := s.Renew(t.Context(), renewalOf(p, time.Hour))
			must(t, err)
		})
		always("completing", "UPDATE", func() { s.mustComplete(p, "x") })
		check("replay", func() { s.mustClaim(claimOf("lease"), driver.DecisionCompleted) })
		q := claimOf("released")
		s.mustClaim(q, driver.DecisionClaimed)
		always("a release", "UPDATE", func() {
			_, err := s.Release(t.Context(), releaseOf(q))
			must(t, err)
		})
		always("purging", "DELETE", func() {
			_, err := s.Purge(t.Context(), driver.PurgeParams{Limit: 10})
			must(t, err)
		})
		check("inbox", func() {
			_, err := s.transact(t.Context(), claimOf("inbox"), effect("inbox"))
			must(t, err)
		})
		check("inbox's replay", func() {
			_, err := s.transact(t.Context(), claimOf("inbox"), none)
			must(t, err)
		})
		tx := s.db.MustBegin()
		ctx := idemsql.Join(t.Context(), tx)
		check("joined", func() {
			_, err := s.transact(ctx, claimOf("joined"), effect("joined"))
			must(t, err)
		})
		check("joined duplicate", func() {
			_, err := s.transact(ctx, claimOf("joined"), none)
			must(t, err)
		})
		must(t, tx.Commit())
	}
}

// A replay takes no lock that a writer could keep it from.
func TestAReplayGoesOnWhileSomebodyWrites(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p := claimOf("done")
	s.mustClaim(p, driver.DecisionClaimed)
	s.mustComplete(p, "x")
	unlock := s.lock()
	defer unlock()
	s.mustClaim(claimOf("done"), driver.DecisionCompleted)
	res, err := s.transact(t.Context(), claimOf("done"), func(context.Context) error { return nil })
	must(t, err)
	if res.Claim.Decision != driver.DecisionCompleted {
		t.Errorf("the inbox answers %v", res.Claim.Decision)
	}
}

func TestWhereDuplicatesAreFrequentAllInboxesReadFirst(t *testing.T) {
	t.Parallel()
	s, r := record(t)
	inbox := func(id string) string {
		return r.of(func() {
			_, err := s.transact(t.Context(), claimOf(id), func(context.Context) error { return nil })
			must(t, err)
		})
	}
	if got := inbox("first"); got != "BEGIN INSERT UPDATE COMMIT" {
		t.Errorf("a new key sends %q", got)
	}
	for range 100 {
		inbox("first")
	}
	if got := inbox("second"); got != "SELECT BEGIN INSERT UPDATE COMMIT" {
		t.Errorf("a new key among duplicates sends %q", got)
	}
	for range 1000 {
		inbox(newID())
	}
	if got := inbox("third"); got != "BEGIN INSERT UPDATE COMMIT" {
		t.Errorf("a new key among new ones sends %q", got)
	}
}
