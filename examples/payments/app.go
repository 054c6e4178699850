package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/idem-go/idem"
	idemsql "github.com/idem-go/idem/drivers/sql"
	"github.com/idem-go/idem/transports/idemhttp"
)

//go:embed page.html
var page []byte

// lease is short, so that the page shows within seconds what happens after its end.
const lease = 2 * time.Second

// app is the API: the same payments, once under each guarantee.
type app struct {
	db      *sqlx.DB
	protect map[idem.Guarantee]func(http.Handler) http.Handler
}

// charge is the effect: money that was taken.
type charge struct {
	ID        int64  `db:"id"        json:"id"`
	Guarantee string `db:"guarantee" json:"guarantee"`
	Key       string `db:"key"       json:"key"`
	Amount    int64  `db:"amount"    json:"amount"`
}

const schema = `CREATE TABLE IF NOT EXISTS charges (
	id INTEGER PRIMARY KEY, guarantee TEXT NOT NULL, key TEXT NOT NULL, amount INTEGER NOT NULL)`

func open(ctx context.Context, database string) (*app, error) {
	db, err := sqlx.Open("sqlite", idemsql.SQLiteDSN(database))
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	store, err := idemsql.New(db)
	if err == nil {
		err = store.Migrate(ctx)
	}
	a := &app{db: db, protect: map[idem.Guarantee]func(http.Handler) http.Handler{}}
	for _, g := range []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce, idem.ExactlyOnce} {
		if err == nil {
			a.protect[g], err = middleware(ctx, store, g)
		}
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return a, nil
}

// middleware returns what makes payments safe to retry. A double-click waits for the first one.
func middleware(ctx context.Context, store *idemsql.Store, g idem.Guarantee) (func(http.Handler) http.Handler, error) {
	opts := []idem.OperationOption{idem.WithWait(5 * time.Second)}
	if g != idem.ExactlyOnce { // which has no lease
		opts = append(opts, idem.WithLeaseTTL(lease))
	}
	op, err := idem.NewOperation(idem.Alias("payments "+g.String()), store, g, opts...)
	if err != nil {
		return nil, err
	}
	if err := op.Verify(ctx); err != nil {
		return nil, err
	}
	return idemhttp.New(op, idemhttp.WithoutPrincipal()) // there is one customer: whoever looks at the page
}

func (a *app) routes() http.Handler {
	mux := http.NewServeMux()
	for g, protect := range a.protect {
		mux.Handle("POST /"+g.String()+"/payments", protect(a.pay(g)))
	}
	mux.HandleFunc("GET /charges", a.charges)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page)
	})
	return mux
}

// pay charges the amount: the handler of a service that knows nothing of retries.
func (a *app) pay(g idem.Guarantee) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			Amount int64 `json:"amount"`
		}
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil || request.Amount <= 0 {
			http.Error(w, "the amount has to be above 0", http.StatusBadRequest)
			return
		}
		c := charge{Guarantee: g.String(), Key: strings.Trim(r.Header.Get("Idempotency-Key"), `"`), Amount: request.Amount}
		if err := a.charge(r.Context(), &c); err != nil {
			http.Error(w, "the charge failed", http.StatusServiceUnavailable)
			return
		}
		if r.Header.Get("X-Crash") != "" {
			crash()
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(c)
	})
}

// charge takes the money, in the transaction if there is one.
func (a *app) charge(ctx context.Context, c *charge) error {
	time.Sleep(200 * time.Millisecond) // a bank takes its time
	var db sqlx.ExtContext = a.db
	if tx, ok := idemsql.Tx(ctx); ok {
		db = tx
	}
	res, err := sqlx.NamedExecContext(ctx, db, `INSERT INTO charges (guarantee, key, amount) VALUES (:guarantee, :key, :amount)`, c)
	if err != nil {
		return err
	}
	c.ID, err = res.LastInsertId()
	return err
}

// crash is what a power failure does: the money is taken, and nobody has written down that it was.
func crash() {
	fmt.Println("crash: the effect is there, its record is not")
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// charges lists the money that was taken, and which process says so.
func (a *app) charges(w http.ResponseWriter, r *http.Request) {
	list := []charge{}
	if err := a.db.SelectContext(r.Context(), &list, `SELECT id, guarantee, key, amount FROM charges ORDER BY id DESC`); err != nil {
		http.Error(w, "the charges cannot be read", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	answer := struct {
		Process int      `json:"process"`
		Charges []charge `json:"charges"`
	}{os.Getpid(), list}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		fmt.Println("the page has gone:", err)
	}
}
