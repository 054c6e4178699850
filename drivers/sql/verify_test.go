package idemsql_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/idem-go/idem/driver"
	idemsql "github.com/idem-go/idem/drivers/sql"
)

func TestVerifyHasNothingToSayAboutItsOwnDSN(t *testing.T) {
	t.Parallel()
	warnings, err := verify(setup(t).Store, driver.AtLeastOnce, driver.AtMostOnce, driver.ExactlyOnce)
	must(t, err)
	if len(warnings) > 0 {
		t.Errorf("Verify warns: %v", warnings)
	}
}

// Rule 32.
func TestVerifyChecksDurability(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pragmas string
		refused bool   // for AtMostOnce
		warns   string // for AtLeastOnce
	}{
		{"journal_mode(WAL) synchronous(NORMAL)", true, "power failure"},
		{"journal_mode(WAL) synchronous(OFF)", true, "power failure"},
		{"journal_mode(WAL) synchronous(FULL)", false, "busy_timeout=0"},
		{"journal_mode(WAL) synchronous(EXTRA)", false, ""},
		{"journal_mode(DELETE) synchronous(FULL)", true, "power failure"},
		{"journal_mode(DELETE) synchronous(EXTRA)", false, "wait for each other"},
		{"journal_mode(TRUNCATE) synchronous(FULL)", false, "wait for each other"},
		{"journal_mode(MEMORY) synchronous(FULL)", true, "power failure"},
	} {
		path := filepath.Join(t.TempDir(), "x.db")
		dsn := "file:" + path + "?_pragma=" + strings.Join(strings.Fields(c.pragmas), "&_pragma=")
		s := setupDSN(t, path, dsn)
		_, err := verify(s.Store, driver.AtMostOnce)
		if (err != nil) != c.refused {
			t.Errorf("%s: AtMostOnce: %v", c.pragmas, err)
		}
		if err != nil && !strings.Contains(err.Error(), "SQLiteDSN(\""+path) {
			t.Errorf("%s: the error does not say what to write: %v", c.pragmas, err)
		}
		warnings, err := verify(s.Store, driver.AtLeastOnce)
		if err != nil || !strings.Contains(strings.Join(warnings, "\n"), c.warns) {
			t.Errorf("%s: AtLeastOnce: %v, %v", c.pragmas, warnings, err)
		}
		risky := setupPool(t, path, s.db, idemsql.WithAcceptedRisk(idemsql.RiskLostWrites))
		warnings, err = verify(risky.Store, driver.AtMostOnce)
		if err != nil || c.refused && len(warnings) == 0 {
			t.Errorf("%s: AtMostOnce with the risk accepted: %v, %v", c.pragmas, warnings, err)
		}
	}
}

func TestVerifyRefusesAnInboxThatCannotRollBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	s := setupDSN(t, path, "file:"+path+"?_pragma=journal_mode(OFF)", idemsql.WithAcceptedRisk(idemsql.RiskLostWrites))
	if _, err := verify(s.Store, driver.ExactlyOnce); err == nil || !strings.Contains(err.Error(), "journal_mode=off") {
		t.Errorf("Verify says %v", err)
	}
}

func TestVerifyWorksOnAPoolOfOneConnection(t *testing.T) {
	t.Parallel()
	db := sqlx.MustOpen("sqlite", ":memory:")
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	s := setupPool(t, "", db)
	warnings, err := verify(s.Store, driver.AtLeastOnce)
	must(t, err)
	if len(warnings) != 1 || !strings.Contains(warnings[0], "in memory") {
		t.Errorf("Verify warns %v about a database in memory", warnings)
	}
	if _, err := verify(s.Store, driver.AtMostOnce); err == nil {
		t.Error("AtMostOnce is not refused in memory")
	}
	_, err = s.transact(t.Context(), claimOf("inbox"), effect("inbox"))
	must(t, err)
}
