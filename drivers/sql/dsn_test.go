package idemsql_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/idem-go/idem/driver"
	idemsql "github.com/idem-go/idem/drivers/sql"
)

func TestSQLiteDSNOpensThePathAsItIsWritten(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"plain.db", "with blank.db", "a?b.db", "a#b.db", "100%.db", "%41.db", "a&b=c.db", "ünï.db", "a+b;c.db", `a"b'c.db`,
		"file:x.db", "%2F.db",
	} {
		path := filepath.Join(t.TempDir(), name)
		db := sqlx.MustOpen("sqlite", idemsql.SQLiteDSN(path))
		db.MustExec("CREATE TABLE x (y)")
		must(t, db.Close())
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestSQLiteDSNTakesARelativePath(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, path := range []string{"a b.db", "./c?.db", "sub/d.db", "//" + t.TempDir() + "/e.db"} {
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		db := sqlx.MustOpen("sqlite", idemsql.SQLiteDSN(path))
		db.MustExec("CREATE TABLE x (y)")
		must(t, db.Close())
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestSQLiteDSNInMemoryIsOneDatabaseForAPoolAndAnotherForEachCall(t *testing.T) {
	t.Parallel()
	a := setupDSN(t, "", idemsql.SQLiteDSN(":memory:"))
	b := setupDSN(t, "", idemsql.SQLiteDSN(":memory:"))
	a.mustClaim(claimOf("x"), driver.DecisionClaimed)
	b.mustClaim(claimOf("x"), driver.DecisionClaimed)
	first, err := a.db.Conn(t.Context())
	must(t, err)
	defer first.Close()
	second, err := a.db.Conn(t.Context())
	must(t, err)
	defer second.Close()
	var n int
	must(t, second.QueryRowContext(t.Context(), "SELECT count(*) FROM idem_records").Scan(&n))
	if n != 1 {
		t.Errorf("another connection of the pool sees %d records", n)
	}
}
