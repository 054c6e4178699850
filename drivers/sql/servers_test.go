package idemsql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"

	"github.com/idem-go/idem/conformance"
	"github.com/idem-go/idem/driver"
	idemsql "github.com/idem-go/idem/drivers/sql"
	"github.com/idem-go/idem/internal/testenv"
)

// server is a database server that the tests may use.
type server struct {
	backend testenv.Name
	driver  string // of database/sql
	opts    []idemsql.Option
	params  string // of the DSN
}

// servers are the servers in the ways in which a program may use them.
var servers = map[string]server{
	"postgres":                 {backend: testenv.Postgres, driver: "postgres"},
	"postgres/repeatable read": {backend: testenv.Postgres, driver: "postgres", opts: isolation(sql.LevelRepeatableRead)},
	"postgres/serializable":    {backend: testenv.Postgres, driver: "postgres", opts: isolation(sql.LevelSerializable)},
	"postgres/binary":          {backend: testenv.Postgres, driver: "postgres", params: "&binary_parameters=yes&timezone=Asia/Tokyo"},
	"postgres/pgx":             {backend: testenv.Postgres, driver: "pgx"},
	"postgres/unprepared": { // S17: as through a pooler in transaction mode
		backend: testenv.Postgres, driver: "pgx", opts: unprepared, params: "&default_query_exec_mode=exec",
	},
	"postgres/unprepared pq": {
		backend: testenv.Postgres, driver: "postgres", opts: unprepared, params: "&binary_parameters=yes",
	},
	"mysql":                {backend: testenv.MySQL, driver: "mysql"},
	"mysql/read committed": {backend: testenv.MySQL, driver: "mysql", opts: isolation(sql.LevelReadCommitted)},
	"mysql/serializable":   {backend: testenv.MySQL, driver: "mysql", opts: isolation(sql.LevelSerializable)},
	"mysql/found rows": { // CASES S6, S10
		backend: testenv.MySQL, driver: "mysql", params: "&clientFoundRows=true&loc=Local&time_zone=%27%2B09%3A00%27",
	},
	"mysql/interpolated": {backend: testenv.MySQL, driver: "mysql", params: "&interpolateParams=true&parseTime=false"},
	"mariadb":            {backend: testenv.MariaDB, driver: "mysql", opts: []idemsql.Option{idemsql.WithDialect(idemsql.MariaDB)}},
	"mariadb/as mysql":   {backend: testenv.MariaDB, driver: "mysql", params: "&clientFoundRows=true"},
}

// column is the server's in the matrix.
func (s server) column() string {
	return map[string]string{
		"postgres postgres": "PostgreSQL (pq)", "postgres pgx": "PostgreSQL (pgx)",
		"mysql mysql": "MySQL", "mariadb mysql": "MariaDB",
	}[string(s.backend)+" "+s.driver]
}

var unprepared = []idemsql.Option{idemsql.WithoutPreparedStatements()}

func isolation(level sql.IsolationLevel) []idemsql.Option {
	return []idemsql.Option{idemsql.WithTxOptions(sql.TxOptions{Isolation: level})}
}

// tables are named apart, so that tests run at once in one database.
var tables atomic.Int64

// open returns a handle on a table of its own, which is dropped afterwards.
func (s server) open(t testing.TB, opts ...idemsql.Option) *bundle {
	t.Helper()
	dsn := testenv.Backend(t, s.backend) + s.params
	table := fmt.Sprintf("idem_test_%s_%d", strings.ToLower(newID()[:8]), tables.Add(1))
	b := s.openTable(t, dsn, table, opts...)
	must(t, b.Migrate(t.Context()))
	_, err := b.db.ExecContext(t.Context(), "CREATE TABLE "+table+"_effects (id VARCHAR(300) NOT NULL)")
	must(t, err)
	t.Cleanup(func() {
		for _, suffix := range []string{"", "_version", "_effects"} {
			_, err := b.db.ExecContext(context.Background(), "DROP TABLE "+table+suffix)
			if err != nil {
				t.Error(err)
			}
		}
	})
	return b
}

// openTable opens another handle, as another process would.
func (s server) openTable(t testing.TB, dsn, table string, opts ...idemsql.Option) *bundle {
	t.Helper()
	db, err := sqlx.Open(s.driver, dsn)
	must(t, err)
	db.SetMaxOpenConns(20)
	t.Cleanup(func() { _ = db.Close() })
	opts = append(append([]idemsql.Option{idemsql.WithSweep(0), idemsql.WithTable(table)}, s.opts...), opts...)
	store, err := idemsql.New(db, opts...)
	must(t, err)
	return &bundle{Store: store, t: t, db: db, path: dsn, table: table}
}

func TestConformanceOnServers(t *testing.T) {
	t.Parallel()
	for name, s := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testenv.Backend(t, s.backend)
			var bundles sync.Map // by driver
			of := func(d driver.Driver) *bundle {
				b, _ := bundles.Load(d)
				return b.(*bundle)
			}
			keep := func(b *bundle) driver.Driver {
				bundles.Store(b.Store, b)
				return b.Store
			}
			fromContext := func(ctx context.Context) (*bundle, error) {
				d, ok := conformance.DriverFrom(ctx)
				if !ok {
					return nil, errors.New("the context carries no driver")
				}
				return of(d), nil
			}
			conformance.Run(t, conformance.Harness{
				Name: s.column(), Report: matrix,
				Open: func(t testing.TB) driver.Driver { t.Helper(); return keep(s.open(t)) },
				Peer: func(t testing.TB, d driver.Driver) driver.Driver {
					t.Helper()
					return keep(s.openTable(t, of(d).path, of(d).table))
				},
				Effect: func(ctx context.Context, id string) error {
					b, err := fromContext(ctx)
					if err != nil {
						return err
					}
					tx, ok := idemsql.Tx(ctx)
					if !ok {
						return errors.New("the context carries no transaction")
					}
					_, err = tx.ExecContext(ctx, tx.Rebind("INSERT INTO "+b.table+"_effects (id) VALUES (?)"), id)
					return err
				},
				Effects: func(ctx context.Context, id string) (n int, err error) {
					b, err := fromContext(ctx)
					if err != nil {
						return 0, err
					}
					err = b.db.GetContext(ctx, &n, b.db.Rebind("SELECT count(*) FROM "+b.table+"_effects WHERE id = ?"), id)
					return n, err
				},
			})
		})
	}
}
