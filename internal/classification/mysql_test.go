package classification_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	idemsql "github.com/idem-go/idem/drivers/sql"
	"github.com/idem-go/idem/internal/testenv"
)

func TestMySQLErrors(t *testing.T) {
	t.Parallel()
	testMySQL(t, testenv.Backend(t, testenv.MySQL), "SET SESSION max_execution_time = 50", "SELECT count(*) FROM information_schema.columns a, information_schema.columns b, information_schema.columns c")
}

func TestMariaDBErrors(t *testing.T) {
	t.Parallel()
	testMySQL(t, testenv.Backend(t, testenv.MariaDB), "SET SESSION max_statement_time = 0.05", "SELECT sleep(10)")
}

func testMySQL(t *testing.T, dsn, limit, long string) {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	must(t, err)
	server := config.Addr
	config.Logger = &mysql.NopLogger{}
	at := func(addr string) *sql.DB {
		moved := config.Clone()
		moved.Addr = addr
		return open(t, "mysql", moved.FormatDSN())
	}
	db, tbl := at(server), name()
	run(t, db, "CREATE TABLE "+tbl+" (x int PRIMARY KEY, y int, z varchar(3), FOREIGN KEY (y) REFERENCES "+tbl+" (x)) ENGINE=InnoDB",
		"INSERT INTO "+tbl+" (x) VALUES (1), (2)", "CREATE TABLE "+tbl+"_full (b varchar(1000)) ENGINE=MEMORY")
	t.Cleanup(func() { _, _ = db.ExecContext(context.Background(), "DROP TABLE "+tbl+", "+tbl+"_full") })
	a, b := conn(t, db), conn(t, db)
	run(t, a, "SET SESSION max_heap_table_size = 16384")
	run(t, a, "DROP TABLE "+tbl+"_full", "CREATE TABLE "+tbl+"_full (b varchar(1000)) ENGINE=MEMORY")
	var full error
	for range 1000 {
		if full = fails(t, a, "INSERT INTO "+tbl+"_full VALUES (repeat('x', 1000))"); full != nil {
			break
		}
	}
	rows := table{
		"connection refused":    {fails(t, at(refused(t)), "SELECT 1"), passing},
		"table full":            {full, passing},
		"unique violation":      {fails(t, db, "INSERT INTO "+tbl+" (x) VALUES (1)"), domain},
		"foreign key violation": {fails(t, db, "INSERT INTO "+tbl+" (x, y) VALUES (3, 99)"), domain},
		"text too long":         {fails(t, db, "INSERT INTO "+tbl+" (x, z) VALUES (4, 'long')"), domain},
		"number out of range":   {fails(t, db, "INSERT INTO "+tbl+" (x) VALUES (99999999999)"), domain},
		"syntax error":          {fails(t, db, "SELEKT 1"), bug},
		"table not there":       {fails(t, db, "SELECT x FROM nowhere"), bug},
		"column not there":      {fails(t, db, "SELECT nothing FROM "+tbl), bug},
		"no rows":               {db.QueryRowContext(t.Context(), "SELECT x FROM "+tbl+" WHERE x = -1").Scan(new(int)), domain},
	}
	run(t, a, "START TRANSACTION READ ONLY")
	rows["read-only transaction"] = provoked{fails(t, a, "INSERT INTO "+tbl+" (x) VALUES (5)"), passing}
	run(t, a, "ROLLBACK")

	run(t, a, "START TRANSACTION", "UPDATE "+tbl+" SET z = 'a' WHERE x = 1")
	run(t, b, "SET SESSION innodb_lock_wait_timeout = 1")
	rows["lock wait timeout"] = provoked{fails(t, b, "UPDATE "+tbl+" SET z = 'b' WHERE x = 1"), passing}
	rows["lock not waited for"] = provoked{fails(t, b, "SELECT x FROM "+tbl+" WHERE x = 1 FOR UPDATE NOWAIT"), passing}
	run(t, b, "SET SESSION innodb_lock_wait_timeout = 50", "START TRANSACTION", "UPDATE "+tbl+" SET z = 'b' WHERE x = 2")
	rows["deadlock"] = provoked{either(
		func() error { return fails(t, a, "UPDATE "+tbl+" SET z = 'a' WHERE x = 2") },
		func() error { return fails(t, b, "UPDATE "+tbl+" SET z = 'b' WHERE x = 1") },
	), passing}
	run(t, a, "ROLLBACK")
	run(t, b, "ROLLBACK")

	run(t, a, limit)
	rows["statement timeout"] = provoked{scanned(t, a, long), passing}
	_, err = db.ExecContext(short(t), "SELECT sleep(10)")
	rows["deadline of the context"] = provoked{err, passing}
	rows["connection killed"] = provoked{killed(t, db, b, "SELECT connection_id()", "KILL", "DO sleep(10)"), passing}
	idle := conn(t, db)
	run(t, idle, "SET SESSION wait_timeout = 1", "START TRANSACTION")
	_, _ = db.ExecContext(t.Context(), "DO sleep(1.5)")
	rows["session ended while idle"] = provoked{fails(t, idle, "SELECT 1"), passing}

	p := newProxy(t, server)
	rows["connection reset"] = provoked{whileAsking(t, at(p.addr()), p.reset, "DO sleep(10)"), passing}
	p = newProxy(t, server)
	cut := conn(t, at(p.addr()))
	p.swallow()
	reset := time.AfterFunc(time.Second, p.reset)
	_, err = cut.ExecContext(short(t), "SELECT 1")
	reset.Stop()
	rows["no reply"] = provoked{err, passing}
	rows.check(t, idemsql.Classify)
}

// scanned returns the error of a query, which may come with its rows.
func scanned(t testing.TB, c *sql.Conn, query string) error {
	t.Helper()
	return c.QueryRowContext(t.Context(), query).Scan(new(int))
}
