package idemsql_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/idem-go/idem/driver"
	idemsql "github.com/idem-go/idem/drivers/sql"
)

// applicationError has a method Code as SQLite's errors do.
type applicationError struct{}

func (applicationError) Error() string { return "an error of the application" }
func (applicationError) Code() int     { return 5 }

func TestClassifySortsErrorsByTheirCode(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	s := setupDSN(t, path, "file:"+path)
	s.db.MustExec("CREATE TABLE u (x INTEGER PRIMARY KEY CHECK (x < 10)) STRICT")
	s.db.MustExec("INSERT INTO u VALUES (1)")
	exec := func(q string) error {
		_, err := s.db.Exec(q)
		if err == nil {
			t.Errorf("%s works", q)
		}
		return err
	}
	readonly := sqlx.MustOpen("sqlite", "file:"+path+"?mode=ro")
	defer readonly.Close()
	_, readonlyErr := readonly.Exec("INSERT INTO u VALUES (2)")
	full := sqlx.MustOpen("sqlite", "file:"+path+"?_pragma=max_page_count(1)")
	defer full.Close()
	_, fullErr := full.Exec("CREATE TABLE big AS SELECT zeroblob(1000000)")
	interrupted, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, interruptErr := s.db.ExecContext(interrupted, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT sum(i) FROM n")
	unlock := s.lock()
	busyErr := exec("INSERT INTO u VALUES (2)")
	unlock()
	closed := sqlx.MustOpen("sqlite", "file:"+path)
	tx := closed.MustBegin()
	must(t, tx.Rollback())
	_, txDone := tx.Exec("SELECT 1")
	must(t, closed.Close())

	for what, c := range map[string]struct {
		err  error
		want driver.FailureKind
	}{
		"busy":                 {busyErr, driver.KindInfrastructure},
		"wrapped and joined":   {errors.Join(errors.New("x"), fmt.Errorf("y: %w", busyErr)), driver.KindInfrastructure},
		"read-only":            {readonlyErr, driver.KindInfrastructure},
		"full":                 {fullErr, driver.KindInfrastructure},
		"a bad connection":     {sqldriver.ErrBadConn, driver.KindInfrastructure},
		"a unique key":         {exec("INSERT INTO u VALUES (1)"), driver.KindDomain},
		"a check":              {exec("INSERT INTO u VALUES (11)"), driver.KindDomain},
		"another type":         {exec("INSERT INTO u VALUES (x'00')"), driver.KindBug},
		"syntax":               {exec("SELEKT"), driver.KindBug},
		"an absent table":      {exec("SELECT x FROM absent"), driver.KindBug},
		"an ended transaction": {txDone, driver.KindBug},
		"no rows":              {sql.ErrNoRows, driver.KindUnknown},
		"the context's":        {interruptErr, driver.KindUnknown}, // the engine knows it
		"the application's":    {applicationError{}, driver.KindUnknown},
		"any other":            {errEffect, driver.KindUnknown},
		"none":                 {nil, driver.KindUnknown},
	} {
		if got := idemsql.Classify(c.err); got != c.want {
			t.Errorf("%s is %v, want %v (%v)", what, got, c.want, c.err)
		}
		if got := s.Classify(driver.ClassifyParams{Err: c.err}); got.Kind != c.want {
			t.Errorf("the store says that %s is %v", what, got.Kind)
		}
	}
}

func TestAFullDatabaseIsErrBusyAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p := claimOf("x")
	s.mustClaim(p, driver.DecisionClaimed)
	s.db.SetMaxOpenConns(1)
	var pages int
	must(t, s.db.Get(&pages, "PRAGMA page_count"))
	s.db.MustExec(fmt.Sprintf("PRAGMA max_page_count = %d", pages+2))
	c := completionOf(p, "x")
	c.Outcome = make([]byte, 1<<20)
	if _, err := s.Complete(t.Context(), c); !errors.Is(err, driver.ErrBusy) {
		t.Errorf("%v is not ErrBusy", err)
	}
	q := claimOf("inbox")
	if _, err := s.Transact(t.Context(), driver.TransactParams{Claim: q}, completeWith(q, c.Outcome)); !errors.Is(err, driver.ErrBusy) {
		t.Errorf("%v is not ErrBusy", err)
	}
	s.mustClaim(claimOf("x"), driver.DecisionInFlight)
	s.mustClaim(q, driver.DecisionClaimed)
}
