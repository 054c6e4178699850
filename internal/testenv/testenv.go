// Package testenv tells a test which server to use, by environment variables. It is for tests only.
//
// Each backend but SQLite has a variable, such as IDEM_TEST_POSTGRES; `scripts/services up` starts the servers and
// `scripts/services env` prints the variables. A test whose backend is not there is skipped. IDEM_TEST_REQUIRE, a list
// such as "sqlite,postgres", names those whose absence is a failure instead, so that a run which is meant to cover a
// backend cannot pass without it.
package testenv

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Name is the name of a backend, as it is written in IDEM_TEST_REQUIRE.
type Name string

// The backends.
const (
	SQLite    Name = "sqlite"    // [Backend] returns the path of a new file, removed when the test ends
	Postgres  Name = "postgres"  // IDEM_TEST_POSTGRES, a URL for github.com/lib/pq
	PgBouncer Name = "pgbouncer" // IDEM_TEST_PGBOUNCER, likewise; in transaction mode, in front of Postgres
	MySQL     Name = "mysql"     // IDEM_TEST_MYSQL, a DSN for github.com/go-sql-driver/mysql
	MariaDB   Name = "mariadb"   // IDEM_TEST_MARIADB, likewise
	Redis     Name = "redis"     // IDEM_TEST_REDIS, host:port or a redis:// URL; [Backend] returns a URL

	RedisCluster  Name = "redis-cluster"  // IDEM_TEST_REDIS_CLUSTER, host:port of some nodes, with commas
	RedisSentinel Name = "redis-sentinel" // IDEM_TEST_REDIS_SENTINEL, likewise of the sentinels of "idem"
	Valkey        Name = "valkey"         // IDEM_TEST_VALKEY, as for Redis
	RabbitMQ      Name = "rabbitmq"       // IDEM_TEST_RABBITMQ, an amqp:// URL
)

const requireVariable = "IDEM_TEST_REQUIRE"

var names = []Name{SQLite, Postgres, PgBouncer, MySQL, MariaDB, Redis, RedisCluster, RedisSentinel, Valkey, RabbitMQ}

// Backend returns where the named backend is. If it is nowhere, the test is skipped, or fails if the backend is
// required. Tests of several packages use a server at the same time: they have to keep to names of their own in it.
func Backend(tb testing.TB, name Name) string {
	tb.Helper()

	if !slices.Contains(names, name) {
		tb.Fatalf("testenv: there is no backend named %q (known: %v)", name, names)
	}

	required := isRequired(tb, name)

	if name == SQLite {
		return filepath.Join(tb.TempDir(), "idem.db")
	}

	url := os.Getenv(variable(name))

	switch {
	case url == "" && required:
		tb.Fatalf("testenv: %s names %s, but %s is not set: %s", requireVariable, name, variable(name), remedy(name))
	case url == "":
		tb.Skipf("testenv: %s is not set: %s", variable(name), remedy(name))
	case (name == Redis || name == Valkey) && !strings.Contains(url, "://"):
		return "redis://" + url
	}

	return url
}

// isRequired fails the test when IDEM_TEST_REQUIRE has a name that does not exist: a misspelt requirement would
// otherwise be none.
func isRequired(tb testing.TB, name Name) bool {
	tb.Helper()

	required := false

	for field := range strings.SplitSeq(os.Getenv(requireVariable), ",") {
		field := Name(strings.TrimSpace(field))
		if field != "" && !slices.Contains(names, field) {
			tb.Fatalf("testenv: %s names %q, which is no backend (known: %v)", requireVariable, field, names)
		}

		required = required || field == name
	}

	return required
}

func variable(name Name) string {
	return "IDEM_TEST_" + strings.ToUpper(strings.ReplaceAll(string(name), "-", "_"))
}

func remedy(name Name) string {
	return "run `make test`, or start a server with `scripts/services up " + string(name) +
		"` and set what `scripts/services env` prints"
}
