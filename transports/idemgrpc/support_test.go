package idemgrpc_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"
	"github.com/redis/rueidis"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	_ "modernc.org/sqlite"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	idemredis "github.com/idem-go/idem/drivers/redis"
	idemsql "github.com/idem-go/idem/drivers/sql"
	"github.com/idem-go/idem/internal/testenv"
	"github.com/idem-go/idem/transports/idemgrpc"
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(childEnv); spec != "" {
		child(spec)
		return
	}
	goleak.VerifyTestMain(m)
}

var quiet = slog.New(slog.DiscardHandler)

const unary = pb.TestService_UnaryCall_FullMethodName

// store opens a store for a test.
type store struct {
	name       string
	guarantees []idem.Guarantee
	open       func(t *testing.T) driver.Driver
}

var (
	leases = []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce}
	all    = append(leases, idem.ExactlyOnce)
)

var stores = []store{
	{"memory", leases, func(t *testing.T) driver.Driver {
		t.Helper()
		s, err := idemmemory.New()
		must(t, err)
		return s
	}},
	{"sqlite", all, func(t *testing.T) driver.Driver {
		t.Helper()
		return openSQL(t, "sqlite", idemsql.SQLiteDSN(testenv.Backend(t, testenv.SQLite)), tableName())
	}},
	{"postgres", all, func(t *testing.T) driver.Driver {
		t.Helper()
		return openSQL(t, "postgres", testenv.Backend(t, testenv.Postgres), tableName())
	}},
	{"redis", leases, func(t *testing.T) driver.Driver {
		t.Helper()
		o, err := rueidis.ParseURL(testenv.Backend(t, testenv.Redis))
		must(t, err)
		o.ForceSingleClient, o.DisableCache, o.PipelineMultiplex = true, true, -1
		client, err := rueidis.NewClient(o)
		must(t, err)
		t.Cleanup(client.Close)
		s, err := idemredis.New(client, idemredis.WithPrefix(tableName()+":"))
		must(t, err)
		return s
	}},
}

func tableName() string { return "idemgrpc_" + strings.ToLower(rand.Text()[:10]) }

func openSQL(t *testing.T, name, dsn, table string) driver.Driver {
	t.Helper()
	db, err := sqlx.Open(name, dsn)
	must(t, err)
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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// service is a server on a real socket, two of whose methods are protected,
// and a client of it.
type service struct {
	pb.UnimplementedTestServiceServer

	t      *testing.T
	conn   *grpc.ClientConn
	client pb.TestServiceClient
	runs   atomic.Int64
	handle func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error)
}

func (s *service) UnaryCall(ctx context.Context, req *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	s.runs.Add(1)
	return s.handle(ctx, req)
}

func (s *service) CacheableUnaryCall(ctx context.Context, req *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	return s.UnaryCall(ctx, req)
}

func (s *service) EmptyCall(context.Context, *pb.Empty) (*pb.Empty, error) {
	s.runs.Add(1)
	return &pb.Empty{}, nil
}

func operation(t *testing.T, d driver.Driver, g idem.Guarantee, opts ...idem.OperationOption) *idem.Operation {
	t.Helper()
	op, err := idem.NewOperation("payments", d, g, append(opts, idem.WithLogger(quiet))...)
	must(t, err)
	return op
}

func serve(t *testing.T, op *idem.Operation, opts ...idemgrpc.Option) *service {
	t.Helper()
	return serveOn(t, "127.0.0.1:0", op, nil, opts...)
}

func serveOn(t *testing.T, address string, op *idem.Operation, dial []grpc.DialOption, opts ...idemgrpc.Option) *service {
	t.Helper()
	protect, err := idemgrpc.UnaryServerInterceptor(
		map[string]*idem.Operation{unary: op, pb.TestService_CacheableUnaryCall_FullMethodName: op},
		append([]idemgrpc.Option{idemgrpc.WithoutPrincipal(), idemgrpc.WithLogger(quiet)}, opts...)...)
	must(t, err)
	s := &service{t: t}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(recoverer, protect))
	pb.RegisterTestServiceServer(server, s)
	l, err := net.Listen("tcp", address)
	must(t, err)
	over := make(chan error, 1)
	go func() { over <- server.Serve(l) }()
	t.Cleanup(func() { server.Stop(); must(t, <-over) })
	s.conn, err = grpc.NewClient(l.Addr().String(), append(dial, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	must(t, err)
	t.Cleanup(func() { _ = s.conn.Close() })
	s.client = pb.NewTestServiceClient(s.conn)
	return s
}

// recoverer is an outer interceptor that answers panics.
func recoverer(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (res any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = status.Errorf(codes.Internal, "recovered %v", p)
		}
	}()
	return h(ctx, req)
}

// answer is what a client got.
type answer struct {
	body     string
	message  *pb.SimpleResponse
	status   *status.Status
	replayed bool
}

// call calls UnaryCall with the key and the body.
func (s *service) call(key, body string, entries ...string) answer {
	s.t.Helper()
	return s.callIn(s.t.Context(), s.client.UnaryCall, key, body, entries...)
}

type method func(context.Context, *pb.SimpleRequest, ...grpc.CallOption) (*pb.SimpleResponse, error)

func (*service) callIn(ctx context.Context, m method, key, body string, entries ...string) answer {
	if key != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, idemgrpc.KeyEntry, key)
	}
	ctx = metadata.AppendToOutgoingContext(ctx, entries...)
	var header metadata.MD
	res, err := m(ctx, request(body), grpc.Header(&header))
	return answer{string(res.GetPayload().GetBody()), res, status.Convert(err), fmt.Sprint(header.Get(idemgrpc.ReplayedEntry)) == "[true]"}
}

func request(body string) *pb.SimpleRequest {
	return &pb.SimpleRequest{Payload: &pb.Payload{Body: []byte(body)}}
}

func response(body any) *pb.SimpleResponse {
	return &pb.SimpleResponse{Payload: &pb.Payload{Body: fmt.Append(nil, body)}, Username: "u", GrpclbRouteType: 1}
}

// wantProblem checks what is answered instead, and that nothing internal is in it.
func (a answer) wantProblem(t *testing.T, code codes.Code, reason idemgrpc.Reason, retry bool) {
	t.Helper()
	got, retries := a.problem()
	if a.status.Code() != code || got != string(reason) || retries != retry {
		t.Errorf("got %v %v, want %v for %s", a.status, a.status.Details(), code, reason)
	}
	for _, inside := range []string{"idem:", "payments", "sql", "panic", "goroutine", "secret"} {
		if strings.Contains(a.status.String(), inside) {
			t.Errorf("%s tells of the inside: %v", reason, a.status)
		}
	}
}

func (a answer) problem() (reason string, retry bool) {
	for _, d := range a.status.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			if d.GetDomain() == idemgrpc.Domain {
				reason = d.GetReason()
			}
		case *errdetails.RetryInfo:
			retry = d.GetRetryDelay().AsDuration() > 0
		}
	}
	return reason, retry
}
