package idemhttp_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"strings"
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

func TestMain(m *testing.M) {
	if spec := os.Getenv(childEnv); spec != "" {
		if err := serveChild(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

var quiet = slog.New(slog.DiscardHandler)

// store is a kind of store that the tests run on.
type store struct {
	name       testenv.Name
	driver     string // of database/sql
	guarantees []idem.Guarantee
}

var (
	leases     = []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce}
	guarantees = []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce, idem.ExactlyOnce}
)

var stores = []store{
	{"memory", "", leases},
	{testenv.SQLite, "sqlite", guarantees},
	{testenv.Postgres, "postgres", guarantees},
	{testenv.MySQL, "mysql", guarantees},
	{testenv.Redis, "", leases},
}

// place is where a store is, for every process that uses it.
type place struct {
	Driver string `json:"driver"` // of database/sql; "": Redis
	DSN    string `json:"dsn"`
	Name   string `json:"name"` // the table, or the prefix
}

// place returns a new store's.
func (s store) place(t *testing.T) place {
	t.Helper()
	p := place{s.driver, testenv.Backend(t, s.name), "idemhttp_" + strings.ToLower(rand.Text()[:10])}
	if s.name == testenv.SQLite {
		p.DSN = idemsql.SQLiteDSN(p.DSN)
	}
	return p
}

// open returns a new store, which is gone after the test.
func (s store) open(t *testing.T) driver.Driver {
	t.Helper()
	if s.name == "memory" {
		return memory(t)
	}
	return s.place(t).forTest(t)
}

// forTest opens the store for a test, and drops it after that.
func (p place) forTest(t *testing.T) driver.Driver {
	t.Helper()
	d, shut, err := p.open(t.Context())
	must(t, err)
	t.Cleanup(shut)
	if p.Driver != "" {
		t.Cleanup(func() {
			db := sqlx.MustOpen(p.Driver, p.DSN)
			db.MustExec("DROP TABLE " + p.Name)
			db.MustExec("DROP TABLE " + p.Name + "_version")
			_ = db.Close()
		})
	}
	return d
}

func (p place) open(ctx context.Context) (d driver.Driver, shut func(), err error) {
	if p.Driver == "" {
		o, err := rueidis.ParseURL(p.DSN)
		if err != nil {
			return nil, nil, err
		}
		client, err := rueidis.NewClient(o)
		if err != nil {
			return nil, nil, err
		}
		d, err := idemredis.New(client, idemredis.WithPrefix(p.Name))
		return d, client.Close, err
	}
	db, err := sqlx.Open(p.Driver, p.DSN)
	if err != nil {
		return nil, nil, err
	}
	s, err := idemsql.New(db, idemsql.WithTable(p.Name))
	if err == nil {
		err = s.Migrate(ctx)
	}
	return s, func() { _ = db.Close() }, err
}

func memory(t *testing.T) driver.Driver {
	t.Helper()
	s, err := idemmemory.New()
	must(t, err)
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
