package idemsql_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/idem-go/idem/driver"
	idemsql "github.com/idem-go/idem/drivers/sql"
)

type foreignDriver struct{}

func (foreignDriver) Open(string) (sqldriver.Conn, error) { return nil, errors.New("never opened") }

func (foreignDriver) Connect(context.Context) (sqldriver.Conn, error) {
	return nil, errors.New("never opened")
}

func (d foreignDriver) Driver() sqldriver.Driver { return d }

func TestNewRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	pool := openFile(t, filepath.Join(t.TempDir(), "x.db"))
	refused := map[string]idemsql.Option{
		"a nil option":                    nil,
		"a table name with a blank":       idemsql.WithTable("a b"),
		"a table name with a quote":       idemsql.WithTable(`a"; DROP TABLE x; --`),
		"an empty table name":             idemsql.WithTable(""),
		"a table name of another schema":  idemsql.WithTable("main.records"),
		"a table name that begins with 1": idemsql.WithTable("1a"),
		"a table name of SQLite's own":    idemsql.WithTable("SQLite_x"),
		"a table name of 49 bytes":        idemsql.WithTable(strings.Repeat("a", 49)),
		"no dialect":                      idemsql.WithDialect(0),
		"a dialect that does not exist":   idemsql.WithDialect(77),
		"a mode that does not exist":      idemsql.WithClaimMode(3),
		"a negative sweep":                idemsql.WithSweep(-1),
		"a risk that does not exist":      idemsql.WithAcceptedRisk(0),
	}
	for what, o := range refused {
		if _, err := idemsql.New(pool, o); err == nil {
			t.Errorf("New takes %s", what)
		}
	}
	if _, err := idemsql.New((*sql.DB)(nil)); err == nil {
		t.Error("New takes a nil *sql.DB")
	}
	if _, err := idemsql.New((*sqlx.DB)(nil)); err == nil {
		t.Error("New takes a nil *sqlx.DB")
	}
}

func TestNewFindsTheDialectByTheDriver(t *testing.T) {
	t.Parallel()
	foreign := sql.OpenDB(foreignDriver{})
	defer foreign.Close()
	if _, err := idemsql.New(foreign); err == nil || !strings.Contains(err.Error(), "WithDialect") {
		t.Errorf("New says %v about a driver that it does not know", err)
	}
	_, err := idemsql.New(foreign, idemsql.WithDialect(idemsql.SQLite))
	must(t, err)
	plain, err := sql.Open("sqlite", ":memory:")
	must(t, err)
	defer plain.Close()
	s, err := idemsql.New(plain)
	must(t, err)
	if name := s.Capabilities().Name; name != "sqlite" {
		t.Errorf("the dialect is %s", name)
	}
}

func TestStoresOverlapByTableAndScope(t *testing.T) {
	t.Parallel()
	a := setup(t)
	peer := setupAt(t, a.path)
	other := setupPool(t, a.path, a.db, idemsql.WithTable("other"))
	overlap := func(x, y driver.Driver, scope string) bool {
		return a.Overlaps(driver.OverlapParams{Scope: "s", Other: y, OtherScope: scope}).Overlap
	}
	switch {
	case !overlap(a.Store, a.Store, "s"), !overlap(a.Store, peer.Store, "s"):
		t.Error("a scope of one table does not overlap itself")
	case overlap(a.Store, a.Store, "t"):
		t.Error("two scopes overlap")
	case overlap(a.Store, other.Store, "s"):
		t.Error("two tables overlap")
	}
}

func TestWithoutPreparedStatementsEverythingWorks(t *testing.T) {
	t.Parallel()
	s := setup(t, idemsql.WithoutPreparedStatements())
	p := claimOf("a")
	s.mustClaim(p, driver.DecisionClaimed)
	s.mustComplete(p, "x")
	s.mustClaim(claimOf("a"), driver.DecisionCompleted)
	_, err := s.transact(t.Context(), claimOf("b"), effect("b"))
	must(t, err)
	_, err = verify(s.Store)
	must(t, err)
}
