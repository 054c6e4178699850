package idemsql_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/idem-go/idem/driver"
)

// Or else each completion would have to move its row in the index.
func TestCompletionKeepsToTheEndThatItsClaimForetold(t *testing.T) {
	t.Parallel()
	everywhere(t, keepsToTheEnd)
}

// everywhere runs f on SQLite and on each kind of server, as it comes.
func everywhere(t *testing.T, f func(*testing.T, *bundle)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		f(t, setup(t))
	})
	for name, s := range servers {
		if len(s.opts) > 0 || s.params != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, s.open(t))
		})
	}
}

// row reads columns of the record of id.
func (b *bundle) row(dest any, columns, id string) {
	b.t.Helper()
	table := cmp.Or(b.table, "idem_records")
	must(b.t, b.db.Get(dest, b.db.Rebind("SELECT "+columns+" FROM "+table+" WHERE id = ?"), []byte(id)))
}

func keepsToTheEnd(t *testing.T, b *bundle) {
	t.Helper()
	end := func(id string) (at *int64) {
		b.row(&at, "purge_at", id)
		return at
	}
	for id, kept := range map[string]time.Duration{
		"as foretold": time.Hour,
		"shorter":     driver.FenceMemory,
		"longer":      2 * time.Hour,
		"for ever":    driver.RetainForever,
	} {
		p := claimOf(id)
		p.Retention = time.Hour
		b.mustClaim(p, driver.DecisionClaimed)
		foretold := end(id)
		c := completionOf(p, "x")
		c.Retention = kept
		res, err := b.Complete(t.Context(), c)
		must(t, err)
		now := end(id)
		switch {
		case (now == nil) != (kept == driver.RetainForever):
			t.Errorf("%s: the row may go at %v", id, now)
		case now == nil:
		case *now < res.CompletedAt.Add(kept).UnixMicro():
			t.Errorf("%s: the row may go before its time", id)
		case (*now == *foretold) != (kept == time.Hour):
			t.Errorf("%s: the end moved by %d us", id, *now-*foretold)
		}
	}
}

func TestRenewedClaimIsKeptForAsLongAsItMayMatter(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, b *bundle) {
		t.Helper()
		one, batched := claimOf("one"), claimOf("batched")
		guard, kept := claimOf("guard"), claimOf("kept")
		guard.OnLapse, guard.Guarantee, guard.Retention, guard.Tombstone = driver.Uncertain, driver.AtMostOnce, time.Hour, time.Minute
		kept.OnLapse, kept.Guarantee, kept.Retention = driver.Uncertain, driver.AtMostOnce, driver.RetainForever
		for p, after := range map[*driver.ClaimParams]time.Duration{
			&one: driver.FenceMemory, &batched: driver.FenceMemory, &guard: time.Hour + time.Minute, &kept: -1,
		} {
			b.mustClaim(*p, driver.DecisionClaimed)
			if p == &batched {
				_, err := b.RenewBatch(t.Context(), driver.RenewBatchParams{Renewals: []driver.RenewParams{renewalOf(*p, 1000*time.Hour)}})
				must(t, err)
			} else {
				_, err := b.Renew(t.Context(), renewalOf(*p, 1000*time.Hour))
				must(t, err)
			}
			var row struct {
				LeaseEnd int64  `db:"lease_end"`
				PurgeAt  *int64 `db:"purge_at"`
			}
			b.row(&row, "lease_end, purge_at", p.Key.ID)
			switch {
			case (row.PurgeAt == nil) != (after < 0):
				t.Errorf("%s: the row may go at %v", p.Key.ID, row.PurgeAt)
			case after < 0:
			case *row.PurgeAt < row.LeaseEnd+after.Microseconds(), *row.PurgeAt > row.LeaseEnd+(after+time.Second).Microseconds():
				t.Errorf("%s: the row may go %d us after the lease, want %v", p.Key.ID, *row.PurgeAt-row.LeaseEnd, after)
			}
		}
	})
}
