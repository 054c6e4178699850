package testenv_test

import (
	"database/sql"
	"strconv"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/lib/pq"
	"github.com/redis/rueidis"
	_ "modernc.org/sqlite"

	"github.com/idem-go/idem/internal/testenv"
)

// minConnections is what the contention tests of several packages need at the same time.
const minConnections = 300

func TestSQLiteAnswers(t *testing.T) {
	t.Parallel()

	db := open(t, "sqlite", testenv.SQLite)

	atLeast(t, "SQLite's major version", major(t, query(t, db, "SELECT sqlite_version()")), 3)
}

func TestPostgresIsADurablePostgres(t *testing.T) {
	t.Parallel()

	db := open(t, "postgres", testenv.Postgres)

	if version := query(t, db, "SELECT version()"); !strings.HasPrefix(version, "PostgreSQL ") {
		t.Errorf("the server is %q, want PostgreSQL", version)
	}

	atLeast(t, "PostgreSQL's major version", major(t, query(t, db, "SHOW server_version")), 13)
	atLeast(t, "max_connections", number(t, query(t, db, "SHOW max_connections")), minConnections)

	for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		if got := query(t, db, "SHOW "+setting); got != "on" {
			t.Errorf("%s is %q, want on", setting, got)
		}
	}
}

func TestMySQLIsADurableMySQL(t *testing.T) {
	t.Parallel()

	db := open(t, "mysql", testenv.MySQL)
	version := query(t, db, "SELECT version()")

	if strings.Contains(version, "MariaDB") {
		t.Fatalf("the server is %q, want Oracle's MySQL", version)
	}

	atLeast(t, "MySQL's major version", major(t, version), 8)
	checkInnoDB(t, db)
}

func TestMariaDBIsADurableMariaDB(t *testing.T) {
	t.Parallel()

	db := open(t, "mysql", testenv.MariaDB)
	version := query(t, db, "SELECT version()")

	if !strings.Contains(version, "MariaDB") {
		t.Fatalf("the server is %q, want MariaDB", version)
	}

	atLeast(t, "MariaDB's major version", major(t, version), 10)
	checkInnoDB(t, db)
}

func checkInnoDB(t *testing.T, db *sql.DB) {
	t.Helper()

	atLeast(t, "max_connections", number(t, query(t, db, "SELECT @@max_connections")), minConnections)

	for _, setting := range []string{"innodb_flush_log_at_trx_commit", "sync_binlog", "innodb_doublewrite"} {
		if got := query(t, db, "SELECT @@"+setting); got != "1" && got != "ON" {
			t.Errorf("%s is %q, want 1 or ON", setting, got)
		}
	}
}

func TestRedisKeepsWhatItAcknowledged(t *testing.T) {
	t.Parallel()

	option, err := rueidis.ParseURL(testenv.Backend(t, testenv.Redis))
	if err != nil {
		t.Fatal(err)
	}

	client, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(client.Close)

	info, err := client.Do(t.Context(), client.B().Info().Section("server").Build()).ToString()
	if err != nil {
		t.Fatal(err)
	}

	if !strings.Contains(info, "\r\nredis_version:") { // Valkey has it too
		t.Errorf("the server is neither Redis nor Valkey:\n%s", info)
	}

	for setting, want := range map[string]string{"maxmemory-policy": "noeviction", "appendonly": "yes", "appendfsync": "always"} {
		got, err := client.Do(t.Context(), client.B().ConfigGet().Parameter(setting).Build()).AsStrMap()
		if err != nil {
			t.Fatal(err)
		}

		if got[setting] != want {
			t.Errorf("%s is %q, want %s", setting, got[setting], want)
		}
	}
}

func open(t *testing.T, driver string, name testenv.Name) *sql.DB {
	t.Helper()

	db, err := sql.Open(driver, testenv.Backend(t, name))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})

	return db
}

// query returns the only value of the statement's only row.
func query(t *testing.T, db *sql.DB, statement string) string {
	t.Helper()

	var value string
	if err := db.QueryRowContext(t.Context(), statement).Scan(&value); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}

	return value
}

func major(t *testing.T, version string) int {
	t.Helper()

	first, _, _ := strings.Cut(version, ".")

	return number(t, first)
}

func number(t *testing.T, text string) int {
	t.Helper()

	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}

	return n
}

func atLeast(t *testing.T, what string, got, want int) {
	t.Helper()

	if got < want {
		t.Errorf("%s is %d, want at least %d", what, got, want)
	}
}
