package benchmarks_test

import (
	"context"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/codec"
	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	idemsql "github.com/idem-go/idem/drivers/sql"
)

type receipt struct {
	Amount int
	ID     string
}

var want = receipt{Amount: 500, ID: "ch_1"}

func charge(context.Context) (receipt, error) { return want, nil }

func operation(b *testing.B, d driver.Driver, g idem.Guarantee, opts ...idem.OperationOption) *idem.Operation {
	b.Helper()
	op, err := idem.NewOperation("payments", d, g, opts...)
	if err != nil {
		b.Fatal(err)
	}
	return op
}

// keys returns a key for each iteration, made before the clock starts.
func keys(b *testing.B) []string {
	b.Helper()
	all := make([]string, b.N)
	for i := range all {
		all[i] = "pay-" + strconv.Itoa(i)
	}
	b.ReportAllocs()
	b.ResetTimer()
	return all
}

// first runs a new key each time.
func first(b *testing.B, op *idem.Operation, fn func(context.Context) (receipt, error)) {
	b.Helper()
	for _, key := range keys(b) {
		if _, err := idem.Execute(b.Context(), key, fn, idem.On(op)); err != nil {
			b.Fatal(err)
		}
	}
}

// replay asks for one key again and again.
func replay(b *testing.B, op *idem.Operation) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		if got, err := idem.Execute(b.Context(), "pay-42", charge, idem.On(op)); err != nil || got != want {
			b.Fatal(got, err)
		}
	}
}

func BenchmarkCodec(b *testing.B) {
	data, err := codec.MessagePack().Append(nil, &want)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := codec.MessagePack().Append(nil, &want); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var got receipt
			if err := codec.MessagePack().Decode(data, &got); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkMemory(b *testing.B) {
	open := func(b *testing.B, opts ...idem.OperationOption) *idem.Operation {
		b.Helper()
		store, err := idemmemory.New(idemmemory.WithMaxRecords(max(b.N, 1)))
		if err != nil {
			b.Fatal(err)
		}
		return operation(b, store, idem.AtLeastOnce, opts...)
	}
	b.Run("first", func(b *testing.B) { first(b, open(b), charge) })
	b.Run("replay", func(b *testing.B) { replay(b, open(b)) })
	b.Run("replay/local", func(b *testing.B) { replay(b, open(b, idem.WithLocalCache(100))) })
}

// BenchmarkSQLite has, beside each kind of call, the statements that a careful
// hand would write for it.
func BenchmarkSQLite(b *testing.B) {
	b.Run("first", func(b *testing.B) { first(b, operation(b, openSQLite(b).store, idem.AtLeastOnce), charge) })
	b.Run("first/raw", func(b *testing.B) {
		db := openSQLite(b)
		for _, key := range keys(b) {
			db.exec(b, db.insert, key)
			db.exec(b, db.update, []byte("outcome"), key)
		}
	})
	b.Run("replay", func(b *testing.B) { replay(b, operation(b, openSQLite(b).store, idem.AtLeastOnce)) })
	b.Run("replay/raw", func(b *testing.B) {
		db := openSQLite(b)
		db.exec(b, db.insert, "pay-42")
		b.ReportAllocs()
		for b.Loop() {
			var outcome []byte
			if err := db.read.GetContext(b.Context(), &outcome, "pay-42"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("inbox", func(b *testing.B) {
		db := openSQLite(b)
		first(b, operation(b, db.store, idem.ExactlyOnce), func(ctx context.Context) (receipt, error) {
			tx, _ := idemsql.Tx(ctx)
			_, err := tx.ExecContext(ctx, "INSERT INTO effects (cents) VALUES (?)", want.Amount)
			return want, err
		})
	})
	b.Run("inbox/raw", func(b *testing.B) {
		db := openSQLite(b)
		for _, key := range keys(b) {
			tx := db.MustBeginTx(b.Context(), nil)
			db.exec(b, tx.Stmtx(db.insert), key)
			tx.MustExecContext(b.Context(), "INSERT INTO effects (cents) VALUES (?)", want.Amount)
			db.exec(b, tx.Stmtx(db.update), []byte("outcome"), key)
			if err := tx.Commit(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// sqlite is a database with a store, and with the least table that could serve instead.
type sqlite struct {
	*sqlx.DB

	store                *idemsql.Store
	insert, update, read *sqlx.Stmt
}

func openSQLite(b *testing.B) *sqlite {
	b.Helper()
	db := sqlx.MustOpen("sqlite", idemsql.SQLiteDSN(filepath.Join(b.TempDir(), "bench.db")))
	b.Cleanup(func() { _ = db.Close() })
	store, err := idemsql.New(db)
	if err != nil {
		b.Fatal(err)
	}
	if err := store.Migrate(b.Context()); err != nil {
		b.Fatal(err)
	}
	db.MustExecContext(b.Context(), "CREATE TABLE raw (id TEXT PRIMARY KEY, outcome BLOB) WITHOUT ROWID")
	db.MustExecContext(b.Context(), "CREATE TABLE effects (cents INTEGER NOT NULL)")
	prepare := func(query string) *sqlx.Stmt {
		st, err := db.PreparexContext(b.Context(), query)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = st.Close() })
		return st
	}
	return &sqlite{
		DB: db, store: store,
		insert: prepare("INSERT INTO raw (id) VALUES (?) ON CONFLICT DO NOTHING"),
		update: prepare("UPDATE raw SET outcome = ? WHERE id = ?"),
		read:   prepare("SELECT outcome FROM raw WHERE id = ?"),
	}
}

func (*sqlite) exec(b *testing.B, st *sqlx.Stmt, args ...any) {
	b.Helper()
	if _, err := st.ExecContext(b.Context(), args...); err != nil {
		b.Fatal(err)
	}
}
