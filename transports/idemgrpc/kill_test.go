package idemgrpc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/idem-go/idem"
	idemsql "github.com/idem-go/idem/drivers/sql"
	"github.com/idem-go/idem/internal/testenv"
	"github.com/idem-go/idem/transports/idemgrpc"
)

// childEnv has the test binary be a server in a process of its own.
const childEnv = "IDEM_TEST_GRPC_SERVER"

// task says what server a child is.
type task struct {
	Address   string         `json:"address"`
	Driver    string         `json:"driver"`
	DSN       string         `json:"dsn"`
	Table     string         `json:"table"`
	Guarantee idem.Guarantee `json:"guarantee"`
	Dies      bool           `json:"dies"` // by SIGKILL, after the effect of its first call
}

// child serves until it is killed.
func child(spec string) {
	var do task
	err := json.Unmarshal([]byte(spec), &do)
	if err == nil {
		err = do.serve()
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func (do task) serve() error {
	db, err := sqlx.Open(do.Driver, do.DSN)
	if err != nil {
		return err
	}
	store, err := idemsql.New(db, idemsql.WithTable(do.Table))
	if err != nil {
		return err
	}
	opts := []idem.OperationOption{idem.WithWait(30 * time.Second)}
	if do.Guarantee != idem.ExactlyOnce {
		opts = append(opts, idem.WithLeaseTTL(2*time.Second))
	}
	op, err := idem.NewOperation("payments", store, do.Guarantee, opts...)
	if err != nil {
		return err
	}
	protect, err := idemgrpc.UnaryServerInterceptor(map[string]*idem.Operation{unary: op}, idemgrpc.WithoutPrincipal())
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(protect))
	pb.RegisterTestServiceServer(server, &payments{do: do, db: db})
	l, err := net.Listen("tcp", do.Address)
	if err != nil {
		return err
	}
	return server.Serve(l)
}

// payments has one effect a call: a row with the call's key.
type payments struct {
	pb.UnimplementedTestServiceServer

	do task
	db *sqlx.DB
}

func (p *payments) UnaryCall(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	run := p.db.ExecContext
	if tx, ok := idemsql.Tx(ctx); ok {
		run = tx.ExecContext
	}
	insert := "INSERT INTO " + p.do.Table + "_effects (id) VALUES ('" + md.Get(idemgrpc.KeyEntry)[0] + "')"
	if _, err := run(ctx, insert); err != nil {
		return nil, err
	}
	if p.do.Dies {
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			_ = self.Kill()
		}
		select {} // the signal is on its way
	}
	return response("charged"), nil
}

// start starts the server. The channel is closed at its end.
func (do task) start(t *testing.T) <-chan struct{} {
	t.Helper()
	spec, err := json.Marshal(do)
	must(t, err)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(spec))
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	over := make(chan struct{})
	go func() { _ = cmd.Wait(); close(over) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-over })
	return over
}

// TestCallSurvivesTheDeathOfItsServer has a client with a retry policy make
// one call, whose server is killed after the effect and started again.
func TestCallSurvivesTheDeathOfItsServer(t *testing.T) {
	t.Parallel()
	for name, driverName := range map[testenv.Name]string{testenv.SQLite: "sqlite", testenv.Postgres: "postgres"} {
		for g, want := range map[idem.Guarantee]struct {
			effects int
			code    codes.Code
		}{
			idem.AtLeastOnce: {2, codes.OK}, idem.AtMostOnce: {1, codes.FailedPrecondition}, idem.ExactlyOnce: {1, codes.OK},
		} {
			t.Run(fmt.Sprintf("%s/%v", name, g), func(t *testing.T) {
				t.Parallel()
				do := task{Driver: driverName, DSN: testenv.Backend(t, name), Table: tableName(), Guarantee: g, Dies: true, Address: freeAddress(t)}
				if name == testenv.SQLite {
					do.DSN = idemsql.SQLiteDSN(do.DSN)
				}
				openSQL(t, do.Driver, do.DSN, do.Table)
				db := sqlx.MustOpen(do.Driver, do.DSN)
				t.Cleanup(func() { db.MustExec("DROP TABLE " + do.Table + "_effects"); _ = db.Close() })
				db.MustExec("CREATE TABLE " + do.Table + "_effects (id TEXT)")

				died := do.start(t)
				do.Dies = false
				conn, err := grpc.NewClient(do.Address, dialOptions()...)
				must(t, err)
				t.Cleanup(func() { _ = conn.Close() })
				over := make(chan error, 1)
				go func() {
					_, err := pb.NewTestServiceClient(conn).UnaryCall(t.Context(), request("500"))
					over <- err
				}()
				<-died
				do.start(t)
				if err := <-over; status.Code(err) != want.code {
					t.Error(err)
				}
				var keys []string
				must(t, db.Select(&keys, "SELECT id FROM "+do.Table+"_effects"))
				if len(keys) != want.effects || strings.Count(strings.Join(keys, " "), keys[0]) != want.effects {
					t.Errorf("the effects are %q, want %d of one key", keys, want.effects)
				}
			})
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
