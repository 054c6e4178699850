package idemsql_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/idem-go/idem/driver"
	idemsql "github.com/idem-go/idem/drivers/sql"
)

// The test binary does what one of these says to the file that it names, and exits.
const (
	migrateEnv = "IDEMSQL_TEST_MIGRATE"
	crashEnv   = "IDEMSQL_TEST_CRASH"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(migrateEnv); path != "" {
		os.Exit(migrateProcess(path))
	}
	if path := os.Getenv(crashEnv); path != "" {
		os.Exit(crashProcess(path))
	}
	if spec := os.Getenv(killEnv); spec != "" {
		os.Exit(killProcess(spec))
	}
	if spec := os.Getenv(contendEnv); spec != "" {
		os.Exit(contendProcess(spec))
	}
	// Most tests here wait: for a lease's end, for a server, for a process.
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set(strconv.Itoa(4 * runtime.GOMAXPROCS(0)))
	}
	goleak.VerifyTestMain(m)
}

// bundle is a store on a database of its own, with a table for effects.
type bundle struct {
	*idemsql.Store

	t     testing.TB
	db    *sqlx.DB
	path  string // of the file, or the server's DSN
	table string // on servers
}

func setup(t testing.TB, opts ...idemsql.Option) *bundle {
	t.Helper()
	return setupAt(t, filepath.Join(t.TempDir(), "records.db"), opts...)
}

// setupAt opens another handle on a database, as another process would.
func setupAt(t testing.TB, path string, opts ...idemsql.Option) *bundle {
	t.Helper()
	return setupDSN(t, path, idemsql.SQLiteDSN(path), opts...)
}

func setupDSN(t testing.TB, path, dsn string, opts ...idemsql.Option) *bundle {
	t.Helper()
	db := sqlx.MustOpen("sqlite", dsn)
	t.Cleanup(func() { _ = db.Close() })
	return setupPool(t, path, db, opts...)
}

func setupPool(t testing.TB, path string, db *sqlx.DB, opts ...idemsql.Option) *bundle {
	t.Helper()
	s, err := idemsql.New(db, append([]idemsql.Option{idemsql.WithSweep(0)}, opts...)...)
	must(t, err)
	must(t, s.Migrate(t.Context()))
	_, err = db.ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS effects (id TEXT NOT NULL)")
	must(t, err)
	return &bundle{Store: s, t: t, db: db, path: path}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newToken() (tok driver.Token) {
	_, _ = rand.Read(tok[:])
	return tok
}

func key(id string) driver.Key { return driver.Key{Scope: "payments", ID: id} }

// claimOf is a claim of a lease with a token of its own.
func claimOf(id string) driver.ClaimParams {
	return driver.ClaimParams{
		Key: key(id), Token: newToken(), Lease: time.Minute, OnLapse: driver.TakeOver,
		Guarantee: driver.AtLeastOnce, Retention: time.Hour, Format: 1,
	}
}

func completionOf(p driver.ClaimParams, outcome string) driver.CompleteParams {
	return driver.CompleteParams{
		Key: p.Key, Token: p.Token, To: driver.StateCompleted, Outcome: []byte(outcome),
		Retention: time.Hour, Format: p.Format,
	}
}

func releaseOf(p driver.ClaimParams) driver.ReleaseParams {
	return driver.ReleaseParams{Key: p.Key, Token: p.Token}
}

func renewalOf(p driver.ClaimParams, lease time.Duration) driver.RenewParams {
	return driver.RenewParams{Key: p.Key, Token: p.Token, Lease: lease}
}

func (b *bundle) mustClaim(p driver.ClaimParams, want driver.Decision) driver.ClaimResult {
	b.t.Helper()
	res, err := b.Claim(b.t.Context(), p)
	must(b.t, err)
	if res.Decision != want {
		b.t.Fatalf("the claim answers %v, want %v: %+v", res.Decision, want, res)
	}
	return res
}

func (b *bundle) mustComplete(p driver.ClaimParams, outcome string) driver.CompleteResult {
	b.t.Helper()
	res, err := b.Complete(b.t.Context(), completionOf(p, outcome))
	must(b.t, err)
	return res
}

// transact runs fn in an inbox and completes with its ID.
func (b *bundle) transact(ctx context.Context, p driver.ClaimParams, fn func(context.Context) error) (driver.TransactResult, error) {
	return b.Transact(ctx, driver.TransactParams{Claim: p},
		func(ctx context.Context, _ driver.ClaimResult) (driver.CompleteParams, error) {
			return completionOf(p, p.Key.ID), fn(ctx)
		})
}

// effect writes an effect in the transaction that ctx carries.
func effect(id string) func(context.Context) error {
	return func(ctx context.Context) error {
		tx, ok := idemsql.Tx(ctx)
		if !ok {
			return errors.New("the context carries no transaction")
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO effects (id) VALUES (?)", id)
		return err
	}
}

func (b *bundle) effects(id string) (n int) {
	b.t.Helper()
	must(b.t, b.db.QueryRow("SELECT count(*) FROM effects WHERE id = ?", id).Scan(&n))
	return n
}

// rows is how many records there are in the default table.
func (b *bundle) rows() (n int) {
	b.t.Helper()
	must(b.t, b.db.QueryRow("SELECT count(*) FROM idem_records").Scan(&n))
	return n
}

// lock takes the file's write lock as another process would, and returns what gives it back.
func (b *bundle) lock() (unlock func()) {
	b.t.Helper()
	db, err := sql.Open("sqlite", idemsql.SQLiteDSN(b.path))
	must(b.t, err)
	tx, err := db.Begin()
	must(b.t, err)
	return func() {
		_ = tx.Rollback()
		_ = db.Close()
	}
}
