package histories_test

import (
	"crypto/rand"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"
	"github.com/redis/rueidis"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/idem-go/idem/conformance"
	"github.com/idem-go/idem/conformance/histories"
	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	idemredis "github.com/idem-go/idem/drivers/redis"
	idemsql "github.com/idem-go/idem/drivers/sql"
	"github.com/idem-go/idem/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	t.Parallel()
	histories.Check(t, conformance.Harness{Open: func(t testing.TB) driver.Driver {
		t.Helper()
		d, err := idemmemory.New(idemmemory.WithMaxRecords(1 << 20))
		must(t, err)
		return d
	}}, histories.Options{})
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	checkSQL(t, idemsql.SQLiteDSN(filepath.Join(t.TempDir(), "records.db")), "sqlite", "sqlite")
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	checkSQL(t, testenv.Backend(t, testenv.Postgres), "postgres", "pgx")
}

func TestMySQL(t *testing.T) {
	t.Parallel()
	checkSQL(t, testenv.Backend(t, testenv.MySQL), "mysql", "mysql")
}

func TestMariaDB(t *testing.T) {
	t.Parallel()
	checkSQL(t, testenv.Backend(t, testenv.MariaDB), "mysql", "mysql")
}

// checkSQL opens the first handle and its peers through two drivers of database/sql.
func checkSQL(t *testing.T, dsn, first, others string) {
	t.Helper()
	table := "idem_histories_" + newName()
	open := func(t testing.TB, name string) *idemsql.Store {
		t.Helper()
		db, err := sqlx.Open(name, dsn)
		must(t, err)
		db.SetMaxOpenConns(16)
		db.SetMaxIdleConns(16)
		t.Cleanup(func() { _ = db.Close() })
		store, err := idemsql.New(db, idemsql.WithTable(table))
		must(t, err)
		return store
	}
	histories.Check(t, conformance.Harness{
		Open: func(t testing.TB) driver.Driver {
			t.Helper()
			store := open(t, first)
			must(t, store.Migrate(t.Context()))
			t.Cleanup(func() { drop(t, first, dsn, table) })
			return store
		},
		Peer: func(t testing.TB, _ driver.Driver) driver.Driver { t.Helper(); return open(t, others) },
	}, histories.Options{})
}

func drop(t testing.TB, name, dsn, table string) {
	t.Helper()
	db, err := sqlx.Open(name, dsn)
	must(t, err)
	defer func() { _ = db.Close() }()
	for _, suffix := range []string{"", "_version"} {
		_, err := db.Exec("DROP TABLE " + table + suffix)
		must(t, err)
	}
}

func TestRedis(t *testing.T) {
	t.Parallel()
	o, err := rueidis.ParseURL(testenv.Backend(t, testenv.Redis))
	must(t, err)
	prefix := "histories-" + newName() + ":"
	open := func(t testing.TB) driver.Driver {
		t.Helper()
		c, err := rueidis.NewClient(o)
		must(t, err)
		t.Cleanup(c.Close)
		store, err := idemredis.New(c, idemredis.WithPrefix(prefix))
		must(t, err)
		return store
	}
	histories.Check(t, conformance.Harness{
		Open: open,
		Peer: func(t testing.TB, _ driver.Driver) driver.Driver { t.Helper(); return open(t) },
	}, histories.Options{})
}

func newName() string { return strings.ToLower(rand.Text()[:10]) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
