package idemclient_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"github.com/idem-go/idem"
	idemsql "github.com/idem-go/idem/drivers/sql"
	"github.com/idem-go/idem/transports/idemhttp"
)

// childEnv has the test binary serve in a process of its own, on the socket that it inherits as file 3.
const childEnv = "IDEM_TEST_SERVE"

// child is a server that dies the first time that it comes to a place.
type child struct {
	Database  string         `json:"database"`
	Guarantee idem.Guarantee `json:"guarantee"`
	DieAt     string         `json:"dieAt"`
}

const (
	afterTheEffect = "after the effect"
	beforeTheReply = "before the reply"
)

func serveChild(spec string) {
	var c child
	check(json.Unmarshal([]byte(spec), &c))
	db, err := sqlx.Open("sqlite", idemsql.SQLiteDSN(c.Database))
	check(err)
	store, err := idemsql.New(db)
	check(err)
	check(store.Migrate(context.Background()))
	opts := []idem.OperationOption{}
	if c.Guarantee != idem.ExactlyOnce {
		opts = append(opts, idem.WithLeaseTTL(time.Second))
	}
	op, err := idem.NewOperation("payments", store, c.Guarantee, opts...)
	check(err)
	protect, err := idemhttp.New(op, idemhttp.WithoutPrincipal(), idemhttp.WithLogger(slog.New(slog.DiscardHandler)))
	check(err)
	listener, err := net.FileListener(os.NewFile(3, "socket"))
	check(err)
	check(http.Serve(listener, c.repliesLost(protect(c.pay(db)))))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// pay has one effect: a row, in the transaction if there is one.
func (c child) pay(db *sqlx.DB) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		const insert = "INSERT INTO effects (key) VALUES ('k')"
		var err error
		if tx, ok := idemsql.Tx(r.Context()); ok {
			_, err = tx.ExecContext(r.Context(), insert)
		} else {
			_, err = db.ExecContext(r.Context(), insert)
		}
		check(err)
		c.die(afterTheEffect)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "paid")
	}
}

// repliesLost dies when everything is recorded and nothing is sent.
func (c child) repliesLost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.DieAt == beforeTheReply && c.first() {
			next.ServeHTTP(httptest.NewRecorder(), r)
			c.die(beforeTheReply)
		}
		next.ServeHTTP(w, r)
	})
}

func (c child) first() bool {
	_, err := os.Stat(c.Database + ".died")
	return err != nil
}

func (c child) die(here string) {
	if c.DieAt == here && c.first() {
		check(os.WriteFile(c.Database+".died", nil, 0o600))
		check(syscall.Kill(os.Getpid(), syscall.SIGKILL))
		select {}
	}
}

// supervise runs the child, and again when it has died, until the test ends.
func (c child) supervise(t *testing.T) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	socket, err := listener.(*net.TCPListener).File()
	must(t, err)
	spec, err := json.Marshal(c)
	must(t, err)
	start := func() *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+string(spec))
		cmd.ExtraFiles = []*os.File{socket}
		cmd.Stderr = os.Stderr
		must(t, cmd.Start())
		return cmd
	}
	cmd := start()
	var over sync.WaitGroup
	over.Go(func() {
		for t.Context().Err() == nil {
			_ = cmd.Wait()
			if t.Context().Err() == nil {
				cmd = start()
			}
		}
	})
	t.Cleanup(func() { over.Wait(); _ = socket.Close(); _ = listener.Close() })
	return "http://" + listener.Addr().String()
}

func TestServerThatDiesIsAskedAgain(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		dieAt     string
		guarantee idem.Guarantee
		status    int
		replayed  string
		effects   int
	}{
		{afterTheEffect, idem.AtLeastOnce, http.StatusCreated, "", 2}, // what the guarantee says, and why there are others
		{afterTheEffect, idem.AtMostOnce, http.StatusConflict, "", 1}, // whose outcome nobody knows
		{afterTheEffect, idem.ExactlyOnce, http.StatusCreated, "", 1},
		{beforeTheReply, idem.AtLeastOnce, http.StatusCreated, "true", 1},
		{beforeTheReply, idem.AtMostOnce, http.StatusCreated, "true", 1},
		{beforeTheReply, idem.ExactlyOnce, http.StatusCreated, "true", 1},
	} {
		t.Run(fmt.Sprintf("%s/%v", row.dieAt, row.guarantee), func(t *testing.T) {
			t.Parallel()
			database := filepath.Join(t.TempDir(), "idem.db")
			db := sqlx.MustOpen("sqlite", idemsql.SQLiteDSN(database))
			t.Cleanup(func() { _ = db.Close() })
			db.MustExec("CREATE TABLE effects (key TEXT)")
			url := child{database, row.guarantee, row.dieAt}.supervise(t)
			a, err := send(t, newClient(t), post(t, url, payment()))
			must(t, err)
			var effects int
			must(t, db.Get(&effects, "SELECT count(*) FROM effects"))
			if a.status != row.status || effects != row.effects || a.header.Get("Idempotency-Replayed") != row.replayed {
				t.Errorf("%+v, %d effects, want %+v", a, effects, row)
			}
		})
	}
}
