package benchmarks_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"

	"github.com/idem-go/idem"
	idemsql "github.com/idem-go/idem/drivers/sql"
	"github.com/idem-go/idem/internal/testenv"
)

// recordsEnv is how many records there are before the benchmarks of servers begin.
const recordsEnv = "IDEM_BENCH_RECORDS"

// BenchmarkServers runs each kind of work by turns with idem and with the
// statements that a careful hand would write, and reports idem's share of the
// raw operations per second.
func BenchmarkServers(b *testing.B) {
	for _, s := range []struct {
		name    string
		backend testenv.Name
		driver  string
	}{
		{"postgres", testenv.Postgres, "postgres"},
		{"pgx", testenv.Postgres, "pgx"},
		{"mysql", testenv.MySQL, "mysql"},
		{"mariadb", testenv.MariaDB, "mysql"},
	} {
		for _, callers := range []int{1, 64} {
			for _, kind := range []string{"first", "replay", "inbox", "half"} {
				b.Run(fmt.Sprintf("%s/%s/%d", s.name, kind, callers), func(b *testing.B) {
					db := openServer(b, s.driver, testenv.Backend(b, s.backend))
					db.compare(b, kind, callers)
				})
			}
		}
	}
}

// serverDB is a table of idem's and the least table that could serve instead.
type serverDB struct {
	*sqlx.DB

	table                        string
	lease, inbox                 *idem.Operation
	insert, update, read, effect *sqlx.Stmt
}

// work is one operation on the key of number i.
type work func(ctx context.Context, i int64) error

// sqlTurn is how many operations one side does before it is the other's turn.
const sqlTurn = 256

// compare lets both sides do b.N operations, by turns.
func (db *serverDB) compare(b *testing.B, kind string, callers int) {
	b.Helper()
	sides := map[string]work{"idem": db.idem(kind), "raw": db.raw(kind)}
	var took [2]time.Duration
	var next atomic.Int64
	ctx := b.Context() // that can end, as a request's
	run := func(f work, n int) time.Duration {
		began := time.Now()
		var left atomic.Int64
		left.Store(int64(n))
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for left.Add(-1) >= 0 {
					if err := f(ctx, next.Add(1)); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		return time.Since(began)
	}
	for _, f := range sides {
		run(f, 2*callers) // statements are prepared, connections made
	}
	b.ResetTimer()
	for done := 0; done < b.N; done += sqlTurn {
		n := min(sqlTurn, b.N-done)
		took[0] += run(sides["idem"], n)
		took[1] += run(sides["raw"], n)
	}
	b.StopTimer()
	b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "ratio")
	b.ReportMetric(float64(b.N)/took[0].Seconds(), "idem/s")
	b.ReportMetric(float64(b.N)/took[1].Seconds(), "raw/s")
}

var benchTables atomic.Int64

func openServer(b *testing.B, driver, dsn string) *serverDB {
	b.Helper()
	db := sqlx.MustOpen(driver, dsn)
	b.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(64)
	db.SetMaxIdleConns(64)
	s := &serverDB{DB: db, table: fmt.Sprintf("bench_%d_%d", os.Getpid(), benchTables.Add(1))}
	store, err := idemsql.New(db, idemsql.WithTable(s.table), idemsql.WithSweep(0))
	if err == nil {
		err = store.Migrate(b.Context())
	}
	if err != nil {
		b.Fatal(err)
	}
	blob := "bytea"
	if driver == "mysql" {
		blob = "LONGBLOB"
	}
	db.MustExec("CREATE TABLE " + s.table + "_raw (id VARCHAR(200) PRIMARY KEY, outcome " + blob + ")")
	db.MustExec("CREATE TABLE " + s.table + "_effects (cents INTEGER NOT NULL)")
	b.Cleanup(func() {
		for _, suffix := range []string{"", "_version", "_raw", "_effects"} {
			db.MustExec("DROP TABLE " + s.table + suffix)
		}
	})
	s.lease = operation(b, store, idem.AtLeastOnce)
	s.inbox = operation(b, store, idem.ExactlyOnce)
	duplicate := "ON CONFLICT DO NOTHING"
	if driver == "mysql" {
		duplicate = "ON DUPLICATE KEY UPDATE id = id"
	}
	prepare := func(query string) *sqlx.Stmt {
		st, err := db.PreparexContext(b.Context(), db.Rebind(query))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = st.Close() })
		return st
	}
	s.insert = prepare("INSERT INTO " + s.table + "_raw (id) VALUES (?) " + duplicate)
	s.update = prepare("UPDATE " + s.table + "_raw SET outcome = ? WHERE id = ?")
	s.read = prepare("SELECT outcome FROM " + s.table + "_raw WHERE id = ?")
	s.effect = prepare("INSERT INTO " + s.table + "_effects (cents) VALUES (?)")
	s.fill(b)
	return s
}

// sqlReplayed is how many keys the replays ask for.
const sqlReplayed = 1000

// fill stores what is sqlReplayed, and as many more as the environment says.
func (db *serverDB) fill(b *testing.B) {
	b.Helper()
	n := sqlReplayed
	if env := os.Getenv(recordsEnv); env != "" {
		n, _ = strconv.Atoi(env)
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for i := next.Add(1) - 1; i < sqlReplayed; i = next.Add(1) - 1 {
				if err := db.replayIdem(b.Context(), i); err != nil {
					b.Error(err)
				}
				if err := db.firstRaw(b.Context(), sqlKey(i)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	db.multiply(b, n)
}

// multiply copies one record until there are n.
func (db *serverDB) multiply(b *testing.B, n int) {
	b.Helper()
	const columns = "format, state, guarantee, on_lapse, took_over, attempt, token, fence, generation, claimed_at, " +
		"lease_end, ended_at, retention, tombstone, purge_at, fingerprint, outcome"
	for have := sqlReplayed; have < n; have += sqlReplayed {
		prefix := "CONCAT('" + strconv.Itoa(have) + "-', id)"
		where := " WHERE id LIKE 'replay-%'"
		if db.DriverName() != "mysql" {
			prefix = "convert_to('" + strconv.Itoa(have) + "-', 'UTF8') || id"
			where = " WHERE position(convert_to('replay-', 'UTF8') in id) = 1"
		}
		db.MustExec("INSERT INTO " + db.table + " (scope, id, " + columns + ") SELECT scope, " + prefix + ", " + columns +
			" FROM " + db.table + where)
		db.MustExec("INSERT INTO " + db.table + "_raw (id, outcome) SELECT CONCAT('" + strconv.Itoa(have) + "-', id), outcome FROM " +
			db.table + "_raw WHERE id LIKE 'replay-%'")
	}
}

func sqlKey(i int64) string { return "replay-" + strconv.FormatInt(i%sqlReplayed, 10) }

func (db *serverDB) idem(kind string) work {
	first := func(ctx context.Context, i int64) error {
		_, err := idem.Execute(ctx, "pay-"+strconv.FormatInt(i, 10), charge, idem.On(db.lease))
		return err
	}
	switch kind {
	case "replay":
		return db.replayIdem
	case "half":
		return halfAndHalf(first, db.replayIdem)
	case "inbox":
		return func(ctx context.Context, i int64) error {
			_, err := idem.Execute(ctx, "box-"+strconv.FormatInt(i, 10), func(ctx context.Context) (receipt, error) {
				tx, _ := idemsql.Tx(ctx)
				_, err := tx.StmtxContext(ctx, db.effect).ExecContext(ctx, want.Amount)
				return want, err
			}, idem.On(db.inbox))
			return err
		}
	}
	return first
}

func (db *serverDB) replayIdem(ctx context.Context, i int64) error {
	_, err := idem.Execute(ctx, sqlKey(i), charge, idem.On(db.lease))
	return err
}

func (db *serverDB) raw(kind string) work {
	first := func(ctx context.Context, i int64) error { return db.firstRaw(ctx, "pay-"+strconv.FormatInt(i, 10)) }
	replay := func(ctx context.Context, i int64) error {
		var outcome []byte
		return db.read.GetContext(ctx, &outcome, sqlKey(i))
	}
	switch kind {
	case "replay":
		return replay
	case "half":
		return halfAndHalf(first, replay)
	case "inbox":
		return db.inboxRaw
	}
	return first
}

func halfAndHalf(first, replay work) work {
	return func(ctx context.Context, i int64) error {
		if i%2 == 0 {
			return first(ctx, i)
		}
		return replay(ctx, i)
	}
}

func (db *serverDB) firstRaw(ctx context.Context, key string) error {
	if _, err := db.insert.ExecContext(ctx, key); err != nil {
		return err
	}
	_, err := db.update.ExecContext(ctx, []byte("outcome"), key)
	return err
}

func (db *serverDB) inboxRaw(ctx context.Context, i int64) error {
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	key := "box-" + strconv.FormatInt(i, 10)
	if _, err := tx.StmtxContext(ctx, db.insert).ExecContext(ctx, key); err != nil {
		return err
	}
	if _, err := tx.StmtxContext(ctx, db.effect).ExecContext(ctx, want.Amount); err != nil {
		return err
	}
	if _, err := tx.StmtxContext(ctx, db.update).ExecContext(ctx, []byte("outcome"), key); err != nil {
		return err
	}
	return tx.Commit()
}
