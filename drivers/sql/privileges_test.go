package idemsql_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/idem-go/idem/driver"
	"github.com/idem-go/idem/internal/testenv"
)

// restricted opens b's table as a user who may do what docs/sql.md says that a
// running program needs, and nothing else.
func (s server) restricted(t *testing.T, b *bundle) *bundle {
	t.Helper()
	user := "plain_" + strings.ToLower(newID()[:8])
	dsn := testenv.Backend(t, s.backend)
	var statements, undo []string
	if s.family() {
		c, err := mysql.ParseDSN(dsn)
		must(t, err)
		statements = []string{
			"CREATE USER '" + user + "'@'%' IDENTIFIED BY 'plain'",
			"GRANT SELECT, INSERT, UPDATE, DELETE ON " + c.DBName + "." + b.table + " TO '" + user + "'@'%'",
			"GRANT SELECT ON " + c.DBName + "." + b.table + "_version TO '" + user + "'@'%'",
			"GRANT INSERT ON " + c.DBName + "." + b.table + "_effects TO '" + user + "'@'%'",
		}
		undo = []string{"DROP USER '" + user + "'@'%'"}
		c.User, c.Passwd = user, "plain"
		dsn = c.FormatDSN()
	} else {
		u, err := url.Parse(dsn)
		must(t, err)
		statements = []string{
			"CREATE ROLE " + user + " LOGIN PASSWORD 'plain'",
			"GRANT SELECT, INSERT, UPDATE, DELETE ON " + b.table + " TO " + user,
			"GRANT SELECT ON " + b.table + "_version TO " + user,
			"GRANT INSERT ON " + b.table + "_effects TO " + user,
		}
		undo = []string{"DROP OWNED BY " + user, "DROP ROLE " + user}
		u.User = url.UserPassword(user, "plain")
		dsn = u.String()
	}
	for _, statement := range statements {
		_, err := b.db.ExecContext(t.Context(), statement)
		must(t, err)
	}
	t.Cleanup(func() {
		for _, statement := range undo {
			if _, err := b.db.ExecContext(context.Background(), statement); err != nil {
				t.Error(err)
			}
		}
	})
	return s.openTable(t, dsn, b.table)
}

func TestRunningNeedsNoMoreThanItsDocumentedPrivileges(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"postgres", "postgres/pgx", "mysql", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := servers[name]
			b := s.restricted(t, s.open(t))
			_, err := b.Verify(t.Context(), driver.VerifyParams{})
			must(t, err)
			lease := claimOf("lease")
			won := b.mustClaim(lease, driver.DecisionClaimed)
			_, err = b.Renew(t.Context(), renewalOf(lease, time.Hour))
			must(t, err)
			b.mustComplete(lease, "x")
			b.mustClaim(claimOf("lease"), driver.DecisionCompleted)
			released := claimOf("released")
			b.mustClaim(released, driver.DecisionClaimed)
			_, err = b.Release(t.Context(), releaseOf(released))
			must(t, err)
			b.mustClaim(claimOf("released"), driver.DecisionClaimed)
			batch, err := b.ClaimBatch(t.Context(), driver.ClaimBatchParams{Claims: []driver.ClaimParams{claimOf("batch"), claimOf("lease")}})
			must(t, err)
			for _, a := range batch.Claims {
				must(t, a.Err)
			}
			_, err = b.transact(t.Context(), claimOf("inbox"), b.write("inbox"))
			must(t, err)
			_, err = b.Resolve(t.Context(), driver.ResolveParams{Key: lease.Key, Fence: won.Fence, Action: driver.ResolveForget, Format: 1})
			must(t, err)
			_, err = b.List(t.Context(), driver.ListParams{Limit: 10})
			must(t, err)
			_, err = b.Purge(t.Context(), driver.PurgeParams{Limit: 10})
			must(t, err)
			if _, err := b.db.ExecContext(t.Context(), "ALTER TABLE "+b.table+" ADD COLUMN more INTEGER"); err == nil {
				t.Error("the user may change the table: the test proves nothing")
			}
		})
	}
}
