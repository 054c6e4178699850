package classification_test

import (
	"database/sql"
	"os"
	"testing"

	_ "modernc.org/sqlite"

	idemsql "github.com/idem-go/idem/drivers/sql"
	"github.com/idem-go/idem/internal/testenv"
)

func TestSQLiteErrors(t *testing.T) {
	t.Parallel()
	path := testenv.Backend(t, testenv.SQLite)
	plain := "file:" + path // without a busy timeout
	db, other := open(t, "sqlite", plain), open(t, "sqlite", plain)
	run(t, db, "CREATE TABLE a (x INTEGER PRIMARY KEY CHECK (x < 100)) STRICT", "CREATE TABLE b (x INTEGER PRIMARY KEY REFERENCES a)", "INSERT INTO a VALUES (1)")
	rows := table{}

	holder, reader := conn(t, db), conn(t, other)
	run(t, holder, "BEGIN IMMEDIATE")
	rows["locked by another writer"] = provoked{fails(t, reader, "INSERT INTO a VALUES (2)"), passing}
	run(t, holder, "ROLLBACK")
	run(t, reader, "BEGIN")
	_ = reader.QueryRowContext(t.Context(), "SELECT x FROM a").Scan(new(int))
	run(t, holder, "PRAGMA journal_mode=DELETE")
	run(t, reader, "ROLLBACK")

	rows["unique violation"] = provoked{fails(t, db, "INSERT INTO a VALUES (1)"), domain}
	rows["check violation"] = provoked{fails(t, db, "INSERT INTO a VALUES (100)"), domain}
	run(t, holder, "PRAGMA foreign_keys=ON")
	rows["foreign key violation"] = provoked{fails(t, holder, "INSERT INTO b VALUES (99)"), domain}
	rows["syntax error"] = provoked{fails(t, db, "SELEKT 1"), bug}
	rows["table not there"] = provoked{fails(t, db, "SELECT x FROM nowhere"), bug}
	rows["no rows"] = provoked{db.QueryRowContext(t.Context(), "SELECT x FROM a WHERE x = -1").Scan(new(int)), domain}

	rows["read-only database"] = provoked{fails(t, open(t, "sqlite", plain+"?mode=ro"), "INSERT INTO a VALUES (3)"), passing}
	rows["database full"] = provoked{fails(t, open(t, "sqlite", plain+"?_pragma=max_page_count(1)"), "CREATE TABLE c AS SELECT zeroblob(1000000)"), passing}
	rows["value too large"] = provoked{fails(t, db, "SELECT zeroblob(2000000000)"), domain}
	rows["folder not there"] = provoked{fails(t, open(t, "sqlite", "file:"+t.TempDir()+"/no/such/file"), "SELECT 1"), passing}
	broken := t.TempDir() + "/broken.db"
	must(t, os.WriteFile(broken, make([]byte, 4096), 0o600))
	rows["file that is no database"] = provoked{fails(t, open(t, "sqlite", "file:"+broken), "CREATE TABLE x (y)"), passing}

	_, err := db.ExecContext(short(t), "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT sum(i) FROM n")
	rows["interrupted by the deadline"] = provoked{err, passing}
	closed := conn(t, other)
	must(t, closed.Close())
	rows["connection that was closed"] = provoked{fails(t, closed, "SELECT 1"), passing}
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{})
	must(t, err)
	must(t, tx.Rollback())
	rows["transaction after its end"] = provoked{fails(t, tx, "SELECT 1"), bug}
	rows.check(t, idemsql.Classify)
}
