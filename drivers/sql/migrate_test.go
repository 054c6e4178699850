package idemsql_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/idem-go/idem/driver"
	idemsql "github.com/idem-go/idem/drivers/sql"
)

func openFile(t testing.TB, path string) *sqlx.DB {
	t.Helper()
	db := sqlx.MustOpen("sqlite", idemsql.SQLiteDSN(path))
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func verify(s *idemsql.Store, gs ...driver.Guarantee) ([]string, error) {
	res, err := s.Verify(context.Background(), driver.VerifyParams{Guarantees: driver.GuaranteeSet(gs...)})
	return res.Warnings, err
}

func names(t testing.TB, db *sqlx.DB) (list []string) {
	t.Helper()
	must(t, db.Select(&list, "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name"))
	return list
}

func TestMigrateTwiceIsMigrateOnce(t *testing.T) {
	t.Parallel()
	s := setup(t)
	before := names(t, s.db)
	s.mustClaim(claimOf("kept"), driver.DecisionClaimed)
	must(t, s.Migrate(t.Context()))
	if after := names(t, s.db); !slices.Equal(before, after) {
		t.Errorf("the schema was %v, and is %v", before, after)
	}
	s.mustClaim(claimOf("kept"), driver.DecisionInFlight)
}

func migrateProcess(path string) int {
	if strings.Contains(path, "\n") {
		return exitCode(migrateServer(path))
	}
	db := sqlx.MustOpen("sqlite", idemsql.SQLiteDSN(path))
	defer db.Close()
	s, err := idemsql.New(db)
	if err == nil {
		err = s.Migrate(context.Background())
	}
	if err == nil {
		_, err = verify(s, driver.AtMostOnce)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// S16: from two processes at once.
func TestManyProcessesMayMigrateAtOnce(t *testing.T) {
	t.Parallel()
	for range 3 {
		path := filepath.Join(t.TempDir(), "records.db")
		var all []*exec.Cmd
		for range 4 {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), migrateEnv+"="+path)
			cmd.Stderr = os.Stderr
			must(t, cmd.Start())
			all = append(all, cmd)
		}
		for _, cmd := range all {
			if err := cmd.Wait(); err != nil {
				t.Errorf("a process could not migrate: %v", err)
			}
		}
		var versions int
		must(t, openFile(t, path).Get(&versions, "SELECT count(*) FROM idem_records_version"))
		if versions != 1 {
			t.Errorf("%d migrations ran, want 1", versions)
		}
	}
}

func TestVerifySaysHowToGetAMissingSchema(t *testing.T) {
	t.Parallel()
	s, err := idemsql.New(openFile(t, filepath.Join(t.TempDir(), "empty.db")))
	must(t, err)
	if _, err := verify(s); err == nil || !strings.Contains(err.Error(), "call Migrate") {
		t.Errorf("Verify of an empty database says %v", err)
	}
	if _, err := s.Claim(t.Context(), claimOf("x")); err == nil {
		t.Error("a claim without a table succeeded")
	}
}

func TestVerifySeesATableThatIsNotWhatItsVersionSays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.db.MustExec("ALTER TABLE idem_records DROP COLUMN took_over")
	s, err := idemsql.New(b.db)
	must(t, err)
	if _, err := verify(s); err == nil || !strings.Contains(err.Error(), "took_over") {
		t.Errorf("Verify says %v", err)
	}
}

func TestALaterSchemaIsRefusedAndLeftAlone(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.db.MustExec("INSERT INTO idem_records_version (version) VALUES (99)")
	if _, err := verify(s.Store); err == nil || !strings.Contains(err.Error(), "update the program") {
		t.Errorf("Verify says %v", err)
	}
	if err := s.Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), "version 99") {
		t.Errorf("Migrate says %v", err)
	}
}

func TestAnUnfinishedSchemaIsOldForVerifyAndFinishedByMigrate(t *testing.T) {
	t.Parallel()
	db := openFile(t, filepath.Join(t.TempDir(), "old.db"))
	db.MustExec("CREATE TABLE idem_records_version (version INTEGER NOT NULL PRIMARY KEY)")
	s, err := idemsql.New(db)
	must(t, err)
	if _, err := verify(s); err == nil || !strings.Contains(err.Error(), "call Migrate") {
		t.Errorf("Verify says %v", err)
	}
	must(t, s.Migrate(t.Context()))
	_, err = verify(s)
	must(t, err)
}

func TestSchemaIsWhatMigrateDoes(t *testing.T) {
	t.Parallel()
	statements, err := idemsql.Schema(idemsql.SQLite, idemsql.WithTable("other"))
	must(t, err)
	db := openFile(t, filepath.Join(t.TempDir(), "manual.db"))
	for _, s := range statements {
		db.MustExec(s)
	}
	s, err := idemsql.New(db, idemsql.WithTable("other"))
	must(t, err)
	_, err = verify(s)
	must(t, err)
	must(t, s.Migrate(t.Context()))
	if _, err := idemsql.Schema(0); err == nil {
		t.Error("there is a schema without a dialect")
	}
}

// S15.
func TestEverythingIsNamedAfterTheTable(t *testing.T) {
	t.Parallel()
	a := setup(t, idemsql.WithTable("alpha"))
	b := setupPool(t, a.path, a.db, idemsql.WithTable("beta"))
	want := []string{"alpha", "alpha_purge", "alpha_version", "beta", "beta_purge", "beta_version", "effects"}
	if got := names(t, a.db); !slices.Equal(got, want) {
		t.Errorf("the names are %v, want %v", got, want)
	}
	a.mustClaim(claimOf("x"), driver.DecisionClaimed)
	b.mustClaim(claimOf("x"), driver.DecisionClaimed)
}
