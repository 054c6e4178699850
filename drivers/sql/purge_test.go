package idemsql_test

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem/driver"
	idemsql "github.com/idem-go/idem/drivers/sql"
)

// fill makes n records that may be purged, and as many that may not.
func (b *bundle) fill(n int) {
	b.t.Helper()
	for _, purgeAt := range []string{"1", "9000000000000000"} {
		b.db.MustExec(`INSERT INTO idem_records (scope, id, format, state, guarantee, on_lapse, token, fence, generation,
			attempt, took_over, claimed_at, ended_at, retention, tombstone, purge_at, outcome)
			WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
			SELECT CAST('old' AS BLOB), CAST(i || '-`+purgeAt+`' AS BLOB), 1, 2, 1, 1, zeroblob(16), i, i, 1, 0, 1, 1, 0, 0, `+
			purgeAt+`, x'01' FROM n`, n)
	}
}

// S14.
func TestParallelSweepersDeleteInBatchesWhileClaimsGoOn(t *testing.T) {
	t.Parallel()
	expired, batch := 100_000, 1000
	if raced {
		expired, batch = 5_000, 100
	}
	s := setup(t)
	s.fill(expired)
	peer := setupAt(t, s.path)
	var wg sync.WaitGroup
	var purged atomic.Int64
	for i := range 4 {
		b := []*bundle{s, peer}[i%2]
		wg.Go(func() {
			for {
				res, err := b.Purge(t.Context(), driver.PurgeParams{Limit: batch})
				if errors.Is(err, driver.ErrBusy) && b == peer {
					continue // the other process writes without a pause
				}
				if err != nil || res.Purged > batch {
					t.Errorf("a purge of at most %d: %d, %v", batch, res.Purged, err)
					return
				}
				purged.Add(int64(res.Purged))
				if res.Purged < batch {
					return
				}
			}
		})
	}
	stop := make(chan struct{})
	go func() { wg.Wait(); close(stop) }()
	claims := 0
	for sweeping := true; sweeping; claims++ {
		select {
		case <-stop:
			sweeping = false
		default:
		}
		p := claimOf(strconv.Itoa(claims))
		s.mustClaim(p, driver.DecisionClaimed)
		s.mustComplete(p, "x")
	}
	if n := purged.Load(); n != int64(expired) {
		t.Errorf("%d records were purged, want %d", n, expired)
	}
	if n := s.rows(); n != expired+claims {
		t.Errorf("%d records are left, want %d", n, expired+claims)
	}
}

func TestPurgeUsesTheIndex(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.fill(1000)
	s.db.MustExec("ANALYZE")
	var plan []string
	rows, err := s.db.Queryx("EXPLAIN QUERY PLAN "+idemsql.PurgeStatement(s.Store), 10)
	must(t, err)
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		must(t, rows.Scan(&id, &parent, &unused, &detail))
		plan = append(plan, detail)
	}
	must(t, rows.Err())
	text := strings.Join(plan, "\n")
	if !strings.Contains(text, "USING COVERING INDEX idem_records_purge (purge_at<?)") ||
		strings.Contains(text, "SCAN") || strings.Contains(text, "B-TREE") {
		t.Errorf("the plan is\n%s", text)
	}
}

func TestWhatIsStillNeededIsNotPurged(t *testing.T) {
	t.Parallel()
	s := setup(t)
	purge := func() int {
		res, err := s.Purge(t.Context(), driver.PurgeParams{Limit: 100})
		must(t, err)
		return res.Purged
	}
	// All are made as they would be long ago: times are moved back by the age.
	age := func(d time.Duration) {
		us := int64(d / time.Microsecond)
		s.db.MustExec(`UPDATE idem_records SET claimed_at = claimed_at - ?1, lease_end = lease_end - ?1,
			ended_at = ended_at - ?1, purge_at = purge_at - ?1`, us)
	}
	live := claimOf("live")
	live.Lease = 24 * time.Hour
	renewed := claimOf("renewed")
	lapsed := claimOf("lapsed")
	renewed.Retention, lapsed.Retention = time.Millisecond, time.Millisecond
	guard := claimOf("guard")
	guard.OnLapse, guard.Guarantee, guard.Retention = driver.Uncertain, driver.AtMostOnce, driver.RetainForever
	released := claimOf("released")
	completed, short := claimOf("completed"), claimOf("short")
	for _, p := range []driver.ClaimParams{live, renewed, lapsed, guard, released, completed, short} {
		s.mustClaim(p, driver.DecisionClaimed)
	}
	_, err := s.Release(t.Context(), releaseOf(released))
	must(t, err)
	s.mustComplete(completed, "x") // kept for an hour
	c := completionOf(short, "x")
	c.Retention = time.Millisecond
	_, err = s.Complete(t.Context(), c)
	must(t, err)
	if n := purge(); n != 0 {
		t.Errorf("%d new records were purged", n)
	}
	age(driver.FenceMemory - time.Second)
	if n := purge(); n != 0 {
		t.Errorf("%d records were purged before FenceMemory", n)
	}
	_, err = s.Renew(t.Context(), renewalOf(renewed, time.Hour))
	must(t, err)
	age(2 * time.Minute)
	if n := purge(); n != 3 { // lapsed, released and short
		t.Errorf("%d records were purged, want those that lapsed, were released and had a short retention", n)
	}
	age(30 * time.Minute)
	if n := purge(); n != 0 {
		t.Errorf("%d records were purged within the retention", n)
	}
	s.mustClaim(claimOf("renewed"), driver.DecisionInFlight)
	age(40 * time.Minute)
	if n := purge(); n != 2 { // completed and renewed
		t.Errorf("%d records were purged, want those that completed and that was renewed once", n)
	}
	age(4 * time.Hour)
	if n := purge(); n != 0 {
		t.Errorf("%d records were purged, want none of what is live or kept for ever", n)
	}
	s.mustClaim(claimOf("live"), driver.DecisionInFlight)
	s.mustClaim(claimOf("guard"), driver.DecisionUncertain)
}

func TestClaimsSweep(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.fill(10)
	sweeping := setupPool(t, s.path, s.db, idemsql.WithSweep(1))
	for i := range 3 {
		sweeping.mustClaim(claimOf(strconv.Itoa(i)), driver.DecisionClaimed)
	}
	for i := range 2 {
		sweeping.mustTransact(claimOf("inbox" + strconv.Itoa(i)))
	}
	if n := s.rows(); n != 10+5 {
		t.Errorf("%d records, want 5 claims and the 10 that are still kept", n)
	}
}

func TestASweepThatFailsFailsNoClaim(t *testing.T) {
	t.Parallel()
	s := setup(t, idemsql.WithSweep(1))
	s.fill(1)
	s.db.MustExec("CREATE TRIGGER never BEFORE DELETE ON idem_records BEGIN SELECT raise(ABORT, 'never'); END")
	s.mustClaim(claimOf("x"), driver.DecisionClaimed)
	if n := s.rows(); n != 3 {
		t.Errorf("%d records, want 3: the sweep was to fail", n)
	}
}
