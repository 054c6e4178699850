package idemsql_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/idem-go/idem/driver"
	idemsql "github.com/idem-go/idem/drivers/sql"
)

// cost is what a call costs in round trips; an inbox beside what its effect costs.
type cost struct{ claim, replay, inbox, inboxReplay, joined, joinedReplay int }

// TestRoundTripsACall is the cost table of the design, counted on the wire.
func TestRoundTripsACall(t *testing.T) {
	t.Parallel()
	for name, modes := range map[string]map[idemsql.ClaimMode]cost{
		"postgres": {
			idemsql.ClaimFirst: {1, 1, 4, 4, 4, 4},
			idemsql.ReadFirst:  {2, 1, 5, 1, 5, 1},
			idemsql.Auto:       {1, 1, 4, 1, 4, 1},
		},
		"mysql": {
			idemsql.ClaimFirst: {1, 2, 4, 4, 4, 4},
			idemsql.ReadFirst:  {2, 1, 5, 1, 5, 1},
			idemsql.Auto:       {1, 1, 4, 1, 4, 1},
		},
		"mariadb": {
			idemsql.ClaimFirst: {1, 1, 4, 4, 4, 3},
			idemsql.ReadFirst:  {2, 1, 5, 1, 5, 1},
			idemsql.Auto:       {1, 1, 4, 1, 4, 1},
		},
	} {
		for mode, want := range modes {
			for _, s := range drivers(name) {
				t.Run(name+"/"+s.driver+"/"+mode.String(), func(t *testing.T) {
					t.Parallel()
					countTrips(t, s, mode, want)
				})
			}
		}
	}
}

// drivers are the ways to use a server that differ by their Go driver.
func drivers(name string) []server {
	if name == "postgres" {
		return []server{servers["postgres"], servers["postgres/pgx"]}
	}
	return []server{servers[name]}
}

func countTrips(t *testing.T, s server, mode idemsql.ClaimMode, want cost) {
	t.Helper()
	b, p := s.through(t, s.open(t), idemsql.WithClaimMode(mode))
	none := func(context.Context) error { return nil }
	trips := func(f func()) int {
		before := p.RoundTrips()
		f()
		return p.RoundTrips() - before
	}
	var got cost
	// The first time each statement is prepared.
	for _, id := range []string{"cold", "warm"} {
		lease := claimOf(id)
		got.claim = trips(func() { b.mustClaim(lease, driver.DecisionClaimed) })
		renewing := trips(func() {
			_, err := b.Renew(t.Context(), renewalOf(lease, time.Hour))
			must(t, err)
		})
		if renewing != 1 && id == "warm" {
			t.Errorf("a renewal takes %d round trips", renewing)
		}
		if n := trips(func() { b.mustComplete(lease, "x") }); n != 1 && id == "warm" {
			t.Errorf("completing takes %d round trips", n)
		}
		got.replay = trips(func() { b.mustClaim(claimOf(id), driver.DecisionCompleted) })
		transact := func(ctx context.Context, id string) func() {
			return func() {
				_, err := b.transact(ctx, claimOf(id), none)
				must(t, err)
			}
		}
		got.inbox = trips(transact(t.Context(), "inbox "+id))
		got.inboxReplay = trips(transact(t.Context(), "inbox "+id))
		tx := b.db.MustBegin()
		ctx := idemsql.Join(t.Context(), tx)
		got.joined = trips(transact(ctx, "joined "+id))
		got.joinedReplay = trips(transact(ctx, "joined "+id))
		must(t, tx.Commit())
	}
	if got != want {
		t.Errorf("round trips: %+v, want %+v", got, want)
	}
}

func TestBatchTakesARoundTripOrTwo(t *testing.T) {
	t.Parallel()
	type trips struct{ claim, again, complete, renew int }
	const n = 100 // go into one statement
	for name, want := range map[string]trips{
		"postgres":     {1, 2, 1, 1},
		"postgres/pgx": {1, 2, 1, 1},
		"mysql":        {2, 2, 1, 2}, // a read says what each came to
		"mariadb":      {2, 2, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := servers[name]
			b, p := s.through(t, s.open(t))
			count := func(f func()) int {
				before := p.RoundTrips()
				f()
				return p.RoundTrips() - before
			}
			var got trips
			for _, id := range []string{"cold", "warm"} {
				claims := make([]driver.ClaimParams, n)
				renewals := make([]driver.RenewParams, n)
				done := make([]driver.CompleteParams, n)
				for i := range claims {
					claims[i] = claimOf(fmt.Sprint(id, i))
					renewals[i] = renewalOf(claims[i], time.Hour)
					done[i] = completionOf(claims[i], "x")
				}
				decided := func(want driver.Decision) {
					res, err := b.ClaimBatch(t.Context(), driver.ClaimBatchParams{Claims: claims})
					must(t, err)
					for _, a := range res.Claims {
						if a.Err != nil || a.Result.Decision != want || a.Result.Fence == 0 {
							t.Fatalf("%+v, want %v", a, want)
						}
					}
				}
				got.claim = count(func() { decided(driver.DecisionClaimed) })
				got.renew = count(func() {
					res, err := b.RenewBatch(t.Context(), driver.RenewBatchParams{Renewals: renewals})
					must(t, err)
					for _, a := range res.Renewals {
						if a.Err != nil || a.Result.LeaseLeft < 59*time.Minute {
							t.Fatalf("%+v", a)
						}
					}
				})
				got.complete = count(func() {
					res, err := b.CompleteBatch(t.Context(), driver.CompleteBatchParams{Completions: done})
					must(t, err)
					for _, a := range res.Completions {
						if a.Err != nil || a.Result.Already || a.Result.CompletedAt.IsZero() {
							t.Fatalf("%+v", a)
						}
					}
				})
				got.again = count(func() { decided(driver.DecisionCompleted) })
			}
			if got != want {
				t.Errorf("round trips: %+v, want %+v", got, want)
			}
		})
	}
}
