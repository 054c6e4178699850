package idemhttp_test

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"
	"github.com/redis/rueidis"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	idemredis "github.com/idem-go/idem/drivers/redis"
	idemsql "github.com/idem-go/idem/drivers/sql"
	"github.com/idem-go/idem/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

// store opens a store for a test.
type store struct {
	name       string
	guarantees []idem.Guarantee
	open       func(t *testing.T) driver.Driver
}

var leases = []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce}

var stores = []store{
	{"memory", leases, memory},
	{"sqlite", append(leases, idem.ExactlyOnce), func(t *testing.T) driver.Driver {
		t.Helper()
		return openSQL(t, "sqlite", idemsql.SQLiteDSN(testenv.Backend(t, testenv.SQLite)))
	}},
	{"postgres", append(leases, idem.ExactlyOnce), func(t *testing.T) driver.Driver {
		t.Helper()
		return openSQL(t, "postgres", testenv.Backend(t, testenv.Postgres))
	}},
	{"mysql", append(leases, idem.ExactlyOnce), func(t *testing.T) driver.Driver {
		t.Helper()
		return openSQL(t, "mysql", testenv.Backend(t, testenv.MySQL))
	}},
	{"redis", leases, openRedis},
}

func memory(t *testing.T) driver.Driver {
	t.Helper()
	s, err := idemmemory.New()
	must(t, err)
	return s
}

var tables atomic.Int64

func openSQL(t *testing.T, name, dsn string) driver.Driver {
	t.Helper()
	db, err := sqlx.Open(name, dsn)
	must(t, err)
	table := fmt.Sprintf("idemhttp_%s_%d", strings.ToLower(rand.Text()[:8]), tables.Add(1))
	s, err := idemsql.New(db, idemsql.WithTable(table))
	must(t, err)
	must(t, s.Migrate(t.Context()))
	t.Cleanup(func() {
		db.MustExec("DROP TABLE " + table)
		db.MustExec("DROP TABLE " + table + "_version")
		_ = db.Close()
	})
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openRedis(t *testing.T) driver.Driver {
	t.Helper()
	o, err := rueidis.ParseURL(testenv.Backend(t, testenv.Redis))
	must(t, err)
	client, err := rueidis.NewClient(o)
	must(t, err)
	t.Cleanup(client.Close)
	s, err := idemredis.New(client, idemredis.WithPrefix("idemhttp-"+strings.ToLower(rand.Text()[:8])+":"))
	must(t, err)
	return s
}
