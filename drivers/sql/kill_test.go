package idemsql_test

import (
	"cmp"
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"modernc.org/sqlite"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/conformance/faults"
	idemsql "github.com/idem-go/idem/drivers/sql"
)

const (
	// killEnv makes the test binary a process that is to be killed.
	killEnv = "IDEMSQL_TEST_KILL"
	// killsEnv is how many processes are killed for each guarantee.
	killsEnv  = "IDEM_TEST_KILLS"
	killLease = 5 * time.Second
)

// killSpec is what a process that is to be killed runs.
type killSpec struct {
	Path      string         `json:"path"`   // of the database; the ledger is beside it
	Driver    string         `json:"driver"` // of a server; else it is SQLite
	DSN       string         `json:"dsn"`
	Table     string         `json:"table"`
	Key       string         `json:"key"`
	Guarantee idem.Guarantee `json:"guarantee"`
}

// killProcess runs one operation, with a point after each statement, around
// each call of the driver, and around the effect.
func killProcess(spec string) int {
	var k killSpec
	if err := json.Unmarshal([]byte(spec), &k); err != nil {
		return exitCode(err)
	}
	connector, err := k.connector()
	if err != nil {
		return exitCode(err)
	}
	c := faults.CrasherFromEnv()
	r := &recorder{Connector: connector, after: func(statement string) error {
		word, _, _ := strings.Cut(statement, " ")
		c.Point("sent " + word)
		return nil
	}}
	op, err := k.operation(sqlx.NewDb(sql.OpenDB(r), cmp.Or(k.Driver, "sqlite")), c)
	if err != nil {
		return exitCode(err)
	}
	_, err = idem.Execute(context.Background(), k.Key, k.effect(c), idem.On(op))
	return exitCode(err)
}

func (k killSpec) connector() (sqldriver.Connector, error) {
	switch k.Driver {
	case "postgres":
		return pq.NewConnector(k.DSN)
	case "mysql":
		return mysql.MySQLDriver{}.OpenConnector(k.DSN)
	}
	return sqlite.NewConnector(idemsql.SQLiteDSN(k.Path))
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func (k killSpec) operation(db *sqlx.DB, c *faults.Crasher) (*idem.Operation, error) {
	opts := []idemsql.Option{idemsql.WithSweep(0)}
	switch k.Driver { // the pool's is the recorder
	case "":
	case "postgres":
		opts = append(opts, idemsql.WithDialect(idemsql.PostgreSQL), idemsql.WithTable(k.Table))
	default:
		opts = append(opts, idemsql.WithDialect(idemsql.MySQL), idemsql.WithTable(k.Table))
	}
	store, err := idemsql.New(db, opts...)
	if err != nil {
		return nil, err
	}
	var with []idem.OperationOption
	if k.Guarantee != idem.ExactlyOnce {
		with = append(with, idem.WithLeaseTTL(killLease))
	}
	return idem.NewOperation("kills", faults.WithPoints(store, c), k.Guarantee, with...)
}

// effect returns a function with one effect: a row in the transaction, or a
// line in a file.
func (k killSpec) effect(c *faults.Crasher) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		c.Point("entered")
		write := func() error { return appendLine(k.Path+".ledger", k.Key) }
		if k.Guarantee == idem.ExactlyOnce {
			write = func() error { return effect(k.Key)(ctx) }
			if k.Driver != "" {
				write = func() error { return (&bundle{table: k.Table}).write(k.Key)(ctx) }
			}
		}
		err := write()
		c.Point("effect")
		return "done " + k.Key, err
	}
}

func appendLine(file, line string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	return errors.Join(err, f.Close())
}

// victim is a key whose process was killed.
type victim struct {
	killSpec

	points []string // that it reached; it died at the last
}

func (v victim) reached(point string) bool { return slices.Contains(v.points, point) }

// claimed, effected and recorded are how far the process came. A statement
// that was sent and not read to its end has not committed on SQLite; a server
// goes on without its client.
func (v victim) claimed() bool {
	return v.reached("after Claim") || v.Driver != "" && (v.reached("sent INSERT") || v.reached("sent WITH"))
}
func (v victim) effected() bool { return v.reached("effect") }
func (v victim) recorded() bool {
	return v.reached("after Complete") || v.Driver != "" && v.reached("sent UPDATE")
}

// wantEffects is how many effects there must be after a retry.
func (v victim) wantEffects() int {
	switch {
	case v.Guarantee == idem.AtLeastOnce && v.effected() && !v.recorded():
		return 2
	case v.Guarantee == idem.AtMostOnce && v.claimed() && !v.effected():
		return 0
	}
	return 1
}

// TestKilledProcessesKeepTheGuarantee kills processes at every point of a call,
// and counts the effects after a retry of each key. CASES L3, N1, N2.
func TestKilledProcessesKeepTheGuarantee(t *testing.T) {
	t.Parallel()
	for _, g := range []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce, idem.ExactlyOnce} {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			killAll(t, s, killSpec{Path: s.path, Guarantee: g}, kills(t, 60))
		})
	}
}

func TestKilledProcessesKeepTheGuaranteeOnServers(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s server) {
		t.Helper()
		for _, g := range []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce, idem.ExactlyOnce} {
			t.Run(g.String(), func(t *testing.T) {
				t.Parallel()
				b := s.open(t)
				k := killSpec{Path: filepath.Join(t.TempDir(), "x"), Driver: s.driver, DSN: b.path, Table: b.table, Guarantee: g}
				killAll(t, b, k, kills(t, 24))
			})
		}
	})
}

// killAll has n processes killed, one at each point in turn.
func killAll(t *testing.T, s *bundle, k killSpec, n int) {
	t.Helper()
	op, err := k.operation(s.db, nil)
	must(t, err)
	all := k.run(t, "alive", 0).points
	var victims []victim
	died := map[string]int{}
	for i := range n {
		began := time.Now()
		v := k.run(t, fmt.Sprintf("key-%d", i), 1+i%len(all))
		victims = append(victims, v)
		died[v.points[len(v.points)-1]]++
		if k.Guarantee == idem.AtMostOnce && v.claimed() && !v.recorded() {
			wantUnknownAtOnce(t, op, v, began)
		}
	}
	for _, v := range victims {
		retry(t, op, v)
	}
	for _, v := range victims {
		if got := v.effects(t, s); got != v.wantEffects() {
			t.Errorf("%s died at %q and has %d effects, want %d", v.Key, v.points[len(v.points)-1], got, v.wantEffects())
		}
	}
	t.Logf("%d killed, by point: %v", len(victims), died)
}

func kills(t *testing.T, n int) int {
	t.Helper()
	if testing.Short() {
		n = min(n, 30)
	}
	return number(t, killsEnv, n)
}

// run has a process killed at the n-th point of the key's call; 0: at none.
func (k killSpec) run(t *testing.T, key string, n int) victim {
	t.Helper()
	k.Key = key
	spec, err := json.Marshal(k)
	must(t, err)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), killEnv+"="+string(spec))
	cmd.Stderr = os.Stderr
	points, killed, err := faults.Crash(t.Context(), cmd, n)
	must(t, err)
	if killed != (n > 0) {
		t.Fatalf("point %d of %s: killed %v after %q", n, key, killed, points)
	}
	return victim{k, points}
}

// wantUnknownAtOnce asks for the key of a guard whose owner has just died: its
// answer is final only once the lease has ended.
func wantUnknownAtOnce(t *testing.T, op *idem.Operation, v victim, began time.Time) {
	t.Helper()
	_, err := idem.Execute(t.Context(), v.Key, v.effect(nil), idem.On(op))
	e, ok := errors.AsType[*idem.Error](err)
	if !ok || !errors.Is(err, idem.ErrOutcomeUnknown) || e.Final && time.Since(began) < killLease {
		t.Errorf("%s, at once: %v", v.Key, err)
	}
}

// retry calls the key again and waits for the dead owner's lease.
func retry(t *testing.T, op *idem.Operation, v victim) {
	t.Helper()
	res, err := idem.ExecuteResult(t.Context(), v.Key, v.effect(nil), idem.On(op), idem.WithWait(2*killLease))
	if v.Guarantee == idem.AtMostOnce && v.claimed() && !v.recorded() {
		if e, ok := errors.AsType[*idem.Error](err); !ok || !errors.Is(err, idem.ErrOutcomeUnknown) || !e.Final {
			t.Errorf("%s died at %q, the retry says %v", v.Key, v.points[len(v.points)-1], err)
		}
		return
	}
	if err != nil || res.Value != "done "+v.Key {
		t.Errorf("%s died at %q, the retry has %q, %v", v.Key, v.points[len(v.points)-1], res.Value, err)
	}
}

// effects counts what happened for the key.
func (v victim) effects(t *testing.T, s *bundle) int {
	t.Helper()
	if v.Guarantee == idem.ExactlyOnce {
		if v.Driver != "" {
			return s.count(v.Key)
		}
		return s.effects(v.Key)
	}
	ledger, err := os.ReadFile(v.Path + ".ledger")
	must(t, err)
	n := 0
	for line := range strings.Lines(string(ledger)) {
		if strings.TrimSpace(line) == v.Key {
			n++
		}
	}
	return n
}
