package classification_test

import (
	"context"
	"database/sql"
	"net/url"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"

	idemsql "github.com/idem-go/idem/drivers/sql"
	"github.com/idem-go/idem/internal/testenv"
)

func TestPostgresErrors(t *testing.T) {
	t.Parallel()
	for _, driverName := range []string{"postgres", "pgx"} {
		t.Run(driverName, func(t *testing.T) {
			t.Parallel()
			testPostgres(t, driverName, testenv.Backend(t, testenv.Postgres))
		})
	}
}

func testPostgres(t *testing.T, driverName, dsn string) {
	t.Helper()
	server, err := url.Parse(dsn)
	must(t, err)
	at := func(addr string) *sql.DB {
		moved := *server
		moved.Host = addr
		return open(t, driverName, moved.String())
	}
	db, tbl := open(t, driverName, dsn), name()
	run(t, db, "CREATE TABLE "+tbl+" (x int PRIMARY KEY CHECK (x < 100), y int REFERENCES "+tbl+", z varchar(3))", "INSERT INTO "+tbl+" VALUES (1), (2)")
	t.Cleanup(func() { _, _ = db.ExecContext(context.Background(), "DROP TABLE "+tbl) })
	a, b := conn(t, db), conn(t, db)
	rows := table{
		"connection refused":    {fails(t, at(refused(t)), "SELECT 1"), passing},
		"unique violation":      {fails(t, db, "INSERT INTO "+tbl+" VALUES (1)"), domain},
		"foreign key violation": {fails(t, db, "INSERT INTO "+tbl+" VALUES (3, 99)"), domain},
		"check violation":       {fails(t, db, "INSERT INTO "+tbl+" VALUES (100)"), domain},
		"text too long":         {fails(t, db, "INSERT INTO "+tbl+" VALUES (4, NULL, 'long')"), domain},
		"number out of range":   {fails(t, db, "SELECT 2147483647::int + 1"), domain},
		"syntax error":          {fails(t, db, "SELEKT 1"), bug},
		"table not there":       {fails(t, db, "SELECT x FROM nowhere"), bug},
		"no rows":               {db.QueryRowContext(t.Context(), "SELECT x FROM "+tbl+" WHERE x = -1").Scan(new(int)), domain},
	}

	run(t, a, "BEGIN READ ONLY")
	rows["read-only transaction"] = provoked{fails(t, a, "INSERT INTO "+tbl+" VALUES (5)"), passing}
	rows["transaction that has failed"] = provoked{fails(t, a, "SELECT 1"), passing}
	run(t, a, "ROLLBACK")

	run(t, a, "BEGIN", "UPDATE "+tbl+" SET z = 'a' WHERE x = 1")
	run(t, b, "SET lock_timeout = '100ms'")
	rows["lock timeout"] = provoked{fails(t, b, "UPDATE "+tbl+" SET z = 'b' WHERE x = 1"), passing}
	rows["lock not waited for"] = provoked{fails(t, b, "SELECT x FROM "+tbl+" WHERE x = 1 FOR UPDATE NOWAIT"), passing}
	run(t, b, "RESET lock_timeout", "BEGIN", "UPDATE "+tbl+" SET z = 'b' WHERE x = 2")
	rows["deadlock"] = provoked{either(
		func() error { return fails(t, a, "UPDATE "+tbl+" SET z = 'a' WHERE x = 2") },
		func() error { return fails(t, b, "UPDATE "+tbl+" SET z = 'b' WHERE x = 1") },
	), passing}
	run(t, a, "ROLLBACK")
	run(t, b, "ROLLBACK")

	for _, c := range []*sql.Conn{a, b} {
		run(t, c, "BEGIN ISOLATION LEVEL REPEATABLE READ")
		_ = c.QueryRowContext(t.Context(), "SELECT x FROM "+tbl).Scan(new(int))
	}
	run(t, a, "UPDATE "+tbl+" SET z = 'a' WHERE x = 1", "COMMIT")
	rows["serialization failure"] = provoked{fails(t, b, "UPDATE "+tbl+" SET z = 'b' WHERE x = 1"), passing}
	run(t, b, "ROLLBACK")

	run(t, a, "SET statement_timeout = '50ms'")
	rows["statement timeout"] = provoked{fails(t, a, "SELECT pg_sleep(10)"), passing}
	_, err = db.ExecContext(short(t), "SELECT pg_sleep(10)")
	rows["deadline of the context"] = provoked{err, passing}
	rows["backend killed"] = provoked{killed(t, db, b, "SELECT pg_backend_pid()", "SELECT pg_terminate_backend($1)", "SELECT pg_sleep(10)"), passing}
	idle := conn(t, db)
	run(t, idle, "SET idle_in_transaction_session_timeout = '20ms'", "BEGIN")
	_, _ = db.ExecContext(t.Context(), "SELECT pg_sleep(0.2)")
	rows["session ended while idle"] = provoked{fails(t, idle, "SELECT 1"), passing}

	p := newProxy(t, server.Host)
	rows["connection reset"] = provoked{whileAsking(t, at(p.addr()), p.reset, "SELECT pg_sleep(10)"), passing}
	p = newProxy(t, server.Host)
	cut := conn(t, at(p.addr()))
	p.swallow()
	reset := time.AfterFunc(time.Second, p.reset) // lib/pq waits on when its context has ended
	_, err = cut.ExecContext(short(t), "SELECT 1")
	reset.Stop()
	rows["no reply"] = provoked{err, passing}
	rows.check(t, idemsql.Classify)
}
