package idemsql_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem/driver"
)

// expiredEnv is how many expired rows are swept, instead of 20,000.
const expiredEnv = "IDEM_TEST_EXPIRED"

// slack is what a time becomes on a machine that runs all tests at once, and
// under the race detector, instead of only this one.
func slack(d time.Duration) time.Duration {
	if raced {
		return 4 * d
	}
	return 2 * d
}

// lapsed inserts leases that lapsed so long ago that they may be purged. n is rounded up to thousands above a thousand.
func (b *bundle) lapsed(s server, n int) {
	b.t.Helper()
	const columns = " (scope, id, format, state, guarantee, on_lapse, took_over, attempt, token, fence, generation, claimed_at, " +
		"lease_end, retention, tombstone, purge_at)"
	if !s.family() {
		b.db.MustExec("INSERT INTO "+b.table+columns+" SELECT 'purged', convert_to(CAST(i AS text), 'UTF8'), 1, 1, 1, 1, false, 1, "+
			"decode(repeat('01', 16), 'hex'), 1, 1, 1, 1, 0, 0, 2 FROM generate_series(1, $1) AS g (i)", n)
		b.db.MustExec("ANALYZE " + b.table)
		return
	}
	const digits = "(SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 " +
		"UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)"
	for from := 0; from < n; from += 1000 {
		b.db.MustExec("INSERT INTO "+b.table+columns+" SELECT 'purged', CAST(? + a.d * 100 + b.d * 10 + c.d AS CHAR), 1, 1, 1, 1, 0, 1, "+
			"REPEAT('1', 16), 1, 1, 1, 1, 0, 0, 2 FROM "+digits+" a, "+digits+" b, "+digits+" c WHERE a.d * 100 + b.d * 10 + c.d < ?",
			from+1, min(n-from, 1000))
	}
	b.db.MustExec("ANALYZE TABLE " + b.table)
}

// S14: four sweepers and claims at once. The batches are found by the index.
func TestParallelSweepers(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s server) {
		t.Helper()
		n := number(t, expiredEnv, 20_000)
		b := s.open(t)
		b.lapsed(s, n)
		kept := claimOf("kept")
		b.mustClaim(kept, driver.DecisionClaimed)
		if plan := b.purgePlan(s); !strings.Contains(plan, b.table+"_purge") {
			t.Errorf("the purge is not found by its index: %s", plan)
		}
		var purged, claims atomic.Int64
		stop := make(chan struct{})
		var sweepers, claimers sync.WaitGroup
		began := time.Now()
		var slowest atomic.Int64
		for range 4 {
			sweepers.Go(func() {
				other := s.openTable(t, b.path, b.table)
				for {
					res, err := other.Purge(t.Context(), driver.PurgeParams{Limit: 1000})
					if err != nil {
						t.Errorf("a purge: %v", err)
						return
					}
					if purged.Add(int64(res.Purged)); res.Purged == 0 {
						return
					}
				}
			})
			claimers.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					p, from := claimOf(fmt.Sprint("new", claims.Add(1))), time.Now()
					_, err := b.Claim(t.Context(), p)
					if err == nil {
						_, err = b.Complete(t.Context(), completionOf(p, "x"))
					}
					if err != nil {
						t.Errorf("a claim beside the purges: %v", err)
						return
					}
					slowest.Store(max(slowest.Load(), int64(time.Since(from))))
				}
			})
		}
		sweepers.Wait()
		close(stop)
		claimers.Wait()
		t.Logf("%d purged in %v, beside %d claims, the slowest in %v",
			purged.Load(), time.Since(began).Round(time.Millisecond), claims.Load(), time.Duration(slowest.Load()).Round(time.Millisecond))
		if purged.Load() != int64(n) {
			t.Errorf("%d of %d rows are purged", purged.Load(), n)
		}
		b.mustComplete(kept, "x")
	})
}

// purgePlan is how the server finds a batch.
func (b *bundle) purgePlan(s server) string {
	b.t.Helper()
	query := "SELECT scope, id FROM " + b.table + " WHERE purge_at < 1000 ORDER BY purge_at LIMIT 1000 FOR UPDATE SKIP LOCKED"
	var plan string
	if s.family() {
		must(b.t, b.db.Get(&plan, "EXPLAIN FORMAT=JSON "+query))
		return plan
	}
	must(b.t, b.db.Get(&plan, "EXPLAIN (FORMAT JSON) "+query))
	return plan
}
