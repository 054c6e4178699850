// Package processes_test has several processes share a store of each kind: one fails, or is
// killed, and another has to make of it what the first one meant. It is a package of its own
// because it imports every driver.
package processes_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"
	"github.com/redis/rueidis"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/idem-go/idem/conformance/faults"
	"github.com/idem-go/idem/driver"
	idemredis "github.com/idem-go/idem/drivers/redis"
	idemsql "github.com/idem-go/idem/drivers/sql"
	"github.com/idem-go/idem/internal/testenv"
)

// childEnv has the test binary do a task in a process of its own.
const childEnv = "IDEM_TEST_TASK"

// task is what a child does, on the store at Where.
type task struct {
	Name   string `json:"name"`
	Where  place  `json:"where"`
	Key    string `json:"key"`
	Ledger string `json:"ledger"` // a file: a line for each effect
}

// tasks are what a child may do.
var tasks = map[string]func(context.Context, task, driver.Driver, *faults.Crasher) error{
	"fail": fail, "replay": replay, "steps": steps, "charge": charge, "reconcile": reconcile,
}

func TestMain(m *testing.M) {
	spec := os.Getenv(childEnv)
	if spec == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := child(spec); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func child(spec string) error {
	var do task
	if err := json.Unmarshal([]byte(spec), &do); err != nil {
		return err
	}
	ctx, c := context.Background(), faults.CrasherFromEnv()
	store, shut, err := do.Where.open(ctx)
	if err != nil {
		return err
	}
	defer shut()
	return tasks[do.Name](ctx, do, faults.WithPoints(store, c), c)
}

// run has a child do the task, and killed at its n-th point; 0: not at all.
func (do task) run(t *testing.T, n int) (points []string) {
	t.Helper()
	points, killed, err := faults.Crash(t.Context(), do.command(t), n)
	if err != nil || killed != (n > 0) {
		t.Fatalf("%s: killed %v at %d after %q, %v", do.Name, killed, n, points, err)
	}
	return points
}

// diesAt has a child do the task until it comes to the point.
func (do task) diesAt(t *testing.T, point string) {
	t.Helper()
	rehearsal := do
	rehearsal.Key, rehearsal.Ledger = do.Key+" rehearsal", filepath.Join(t.TempDir(), "rehearsal")
	for i, p := range rehearsal.run(t, 0) {
		if p == point {
			do.run(t, i+1)
			return
		}
	}
	t.Fatalf("%s never comes to %q", do.Name, point)
}

func (do task) command(t *testing.T) *exec.Cmd {
	t.Helper()
	spec, err := json.Marshal(do)
	must(t, err)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(spec), "GORACE=atexit_sleep_ms=10") // else each sleeps for a second
	cmd.Stderr = os.Stderr
	return cmd
}

// place is where a store is.
type place struct {
	Driver string `json:"driver"` // of database/sql; redis
	DSN    string `json:"dsn"`
	Table  string `json:"table"` // or the prefix
}

func (p place) open(ctx context.Context) (driver.Driver, func(), error) {
	if p.Driver == "redis" {
		o, err := rueidis.ParseURL(p.DSN)
		if err != nil {
			return nil, nil, err
		}
		o.ForceSingleClient, o.DisableCache, o.PipelineMultiplex = true, true, -1
		client, err := rueidis.NewClient(o)
		if err != nil {
			return nil, nil, err
		}
		store, err := idemredis.New(client, idemredis.WithPrefix(p.Table))
		return store, client.Close, err
	}
	db, err := sqlx.Open(p.Driver, p.DSN)
	if err != nil {
		return nil, nil, err
	}
	shut := func() { _ = db.Close() }
	store, err := idemsql.New(db, idemsql.WithTable(p.Table), idemsql.WithSweep(0))
	if err == nil {
		err = store.Migrate(ctx)
	}
	return store, shut, err
}

// everyStore runs a test on a store of each kind.
func everyStore(t *testing.T, test func(t *testing.T, where place, d driver.Driver)) {
	t.Helper()
	for name, driverName := range map[testenv.Name]string{
		testenv.SQLite: "sqlite", testenv.Postgres: "postgres", testenv.MySQL: "mysql", testenv.MariaDB: "mysql", testenv.Redis: "redis",
	} {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			where := place{Driver: driverName, DSN: testenv.Backend(t, name), Table: "idem_processes_" + strings.ToLower(rand.Text()[:10])}
			if name == testenv.SQLite {
				where.DSN = idemsql.SQLiteDSN(where.DSN)
			}
			d, shut, err := where.open(t.Context())
			must(t, err)
			t.Cleanup(func() {
				must(t, where.drop(context.Background()))
				shut()
			})
			test(t, where, d)
		})
	}
}

// drop removes what is left on a server.
func (p place) drop(ctx context.Context) error {
	if p.Driver == "redis" {
		return p.redis(ctx, func(c rueidis.Client, keys []string) error {
			for _, key := range keys {
				if err := c.Do(ctx, c.B().Del().Key(key).Build()).Error(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	db, err := sqlx.Open(p.Driver, p.DSN)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(ctx, "DROP TABLE "+p.Table)
	_, errVersion := db.ExecContext(ctx, "DROP TABLE "+p.Table+"_version")
	return errors.Join(err, errVersion)
}

// redis hands over the keys of the store.
func (p place) redis(ctx context.Context, f func(c rueidis.Client, keys []string) error) error {
	o, err := rueidis.ParseURL(p.DSN)
	if err != nil {
		return err
	}
	o.ForceSingleClient, o.DisableCache, o.PipelineMultiplex = true, true, -1
	c, err := rueidis.NewClient(o)
	if err != nil {
		return err
	}
	defer c.Close()
	var all []string
	for cursor := uint64(0); ; {
		page, err := c.Do(ctx, c.B().Scan().Cursor(cursor).Match(p.Table+"*").Count(1000).Build()).AsScanEntry()
		if err != nil {
			return err
		}
		all = append(all, page.Elements...)
		if cursor = page.Cursor; cursor == 0 {
			return f(c, all)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// effect writes a line into the ledger, and comes to a point.
func effect(ledger, line string, c *faults.Crasher) error {
	f, err := os.OpenFile(ledger, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	err = errors.Join(err, f.Close())
	c.Point("effect " + line)
	return err
}

// counts says how often each line is in the ledger.
func counts(t testing.TB, ledger string) map[string]int {
	t.Helper()
	n, err := readLedger(ledger)
	if err != nil {
		t.Error(err)
	}
	return n
}

func readLedger(ledger string) (map[string]int, error) {
	data, err := os.ReadFile(ledger)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	n := map[string]int{}
	for line := range strings.Lines(string(data)) {
		n[strings.TrimSpace(line)]++
	}
	return n, err
}
