package idemevent_test

import (
	"crypto/rand"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"
	"github.com/redis/rueidis"
	_ "modernc.org/sqlite"

	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	idemredis "github.com/idem-go/idem/drivers/redis"
	idemsql "github.com/idem-go/idem/drivers/sql"
	"github.com/idem-go/idem/internal/testenv"
)

// stores opens a store of each kind, with nothing in it.
var stores = map[string]func(*testing.T) driver.Driver{
	"memory": memory,
	"sqlite": func(t *testing.T) driver.Driver {
		t.Helper()
		return openSQL(t, "sqlite", idemsql.SQLiteDSN(testenv.Backend(t, testenv.SQLite)))
	},
	"postgres": func(t *testing.T) driver.Driver {
		t.Helper()
		return openSQL(t, "postgres", testenv.Backend(t, testenv.Postgres))
	},
	"mysql": func(t *testing.T) driver.Driver {
		t.Helper()
		return openSQL(t, "mysql", testenv.Backend(t, testenv.MySQL))
	},
	"mariadb": func(t *testing.T) driver.Driver {
		t.Helper()
		return openSQL(t, "mysql", testenv.Backend(t, testenv.MariaDB))
	},
	"redis": openRedis,
}

func memory(t *testing.T) driver.Driver {
	t.Helper()
	s, err := idemmemory.New()
	must(t, err)
	return s
}

func newName() string { return "idemevent_" + strings.ToLower(rand.Text()[:10]) }

func openSQL(t *testing.T, name, dsn string) driver.Driver {
	t.Helper()
	db, err := sqlx.Open(name, dsn)
	must(t, err)
	table := newName()
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

func openRedis(t *testing.T) driver.Driver {
	t.Helper()
	o, err := rueidis.ParseURL(testenv.Backend(t, testenv.Redis))
	must(t, err)
	o.ForceSingleClient, o.DisableCache, o.PipelineMultiplex = true, true, -1
	client, err := rueidis.NewClient(o)
	must(t, err)
	t.Cleanup(client.Close)
	s, err := idemredis.New(client, idemredis.WithPrefix(newName()+":"))
	must(t, err)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
