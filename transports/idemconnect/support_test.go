package idemconnect_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"
	"github.com/redis/rueidis"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	pb "google.golang.org/grpc/interop/grpc_testing"
	_ "modernc.org/sqlite"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	idemredis "github.com/idem-go/idem/drivers/redis"
	idemsql "github.com/idem-go/idem/drivers/sql"
	"github.com/idem-go/idem/internal/testenv"
	"github.com/idem-go/idem/transports/idemconnect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

const (
	unary = pb.TestService_UnaryCall_FullMethodName
	other = pb.TestService_CacheableUnaryCall_FullMethodName
	bare  = pb.TestService_UnimplementedCall_FullMethodName // not protected
)

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
		return openSQL(t, "sqlite", idemsql.SQLiteDSN(testenv.Backend(t, testenv.SQLite)))
	}},
	{"postgres", all, func(t *testing.T) driver.Driver {
		t.Helper()
		return openSQL(t, "postgres", testenv.Backend(t, testenv.Postgres))
	}},
	{"redis", leases, func(t *testing.T) driver.Driver {
		t.Helper()
		o, err := rueidis.ParseURL(testenv.Backend(t, testenv.Redis))
		must(t, err)
		o.ForceSingleClient, o.DisableCache, o.PipelineMultiplex = true, true, -1
		client, err := rueidis.NewClient(o)
		must(t, err)
		t.Cleanup(client.Close)
		s, err := idemredis.New(client, idemredis.WithPrefix(newName()+":"))
		must(t, err)
		return s
	}},
}

func newName() string { return "idemconnect_" + strings.ToLower(rand.Text()[:10]) }

func openSQL(t *testing.T, name, dsn string) driver.Driver {
	t.Helper()
	db, err := sqlx.Open(name, dsn)
	must(t, err)
	table := newName()
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

func operation(t *testing.T, d driver.Driver, g idem.Guarantee, opts ...idem.OperationOption) *idem.Operation {
	t.Helper()
	op, err := idem.NewOperation("payments", d, g, append(opts, idem.WithLogger(quiet))...)
	must(t, err)
	return op
}

type call = func(context.Context, *connect.Request[pb.SimpleRequest]) (*connect.Response[pb.SimpleResponse], error)

// service is a server on a real socket and a client of it, by one of the protocols.
type service struct {
	t      *testing.T
	url    string
	client *http.Client
	opts   []connect.ClientOption
	runs   atomic.Int64
	handle call
}

// protocols are the ways to call.
var protocols = map[string][]connect.ClientOption{
	"connect": nil, "json": {connect.WithProtoJSON()}, "grpc": {connect.WithGRPC()}, "grpcweb": {connect.WithGRPCWeb()},
}

func serve(t *testing.T, op *idem.Operation, protocol string, opts ...idemconnect.Option) *service {
	t.Helper()
	protect, err := idemconnect.Interceptor(map[string]*idem.Operation{unary: op, other: op},
		append([]idemconnect.Option{idemconnect.WithoutPrincipal(), idemconnect.WithLogger(quiet)}, opts...)...)
	must(t, err)
	s := &service{t: t, opts: protocols[protocol]}
	mux := http.NewServeMux()
	for _, procedure := range []string{unary, other, bare} {
		mux.Handle(procedure, connect.NewUnaryHandler(procedure,
			func(ctx context.Context, req *connect.Request[pb.SimpleRequest]) (*connect.Response[pb.SimpleResponse], error) {
				s.runs.Add(1)
				return s.handle(ctx, req)
			}, connect.WithRecover(recovered), connect.WithInterceptors(protect)))
	}
	server := httptest.NewUnstartedServer(mux)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	s.url, s.client = server.URL, server.Client()
	return s
}

func recovered(_ context.Context, _ connect.Spec, _ http.Header, p any) error {
	return connect.NewError(connect.CodeInternal, fmt.Errorf("recovered %v", p))
}

func (s *service) to(procedure string, opts ...connect.ClientOption) call {
	return connect.NewClient[pb.SimpleRequest, pb.SimpleResponse](s.client, s.url+procedure, append(opts, s.opts...)...).CallUnary
}

// answer is what a client got.
type answer struct {
	body     string
	message  *pb.SimpleResponse
	err      *connect.Error
	replayed bool
}

func (a answer) code() connect.Code {
	if a.err == nil {
		return 0
	}
	return a.err.Code()
}

// call calls UnaryCall with the key and the body.
func (s *service) call(key, body string) answer {
	s.t.Helper()
	return s.callTo(s.t.Context(), s.to(unary), body, idemconnect.KeyHeader, key)
}

// callTo calls with headers; those without a value are left out.
func (s *service) callTo(ctx context.Context, to call, body string, headers ...string) answer {
	req := connect.NewRequest(request(body))
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] != "" {
			req.Header().Add(headers[i], headers[i+1])
		}
	}
	res, err := to(ctx, req)
	if err == nil {
		return answer{string(res.Msg.GetPayload().GetBody()), res.Msg, nil, res.Header().Get(idemconnect.ReplayedHeader) == "true"}
	}
	e, ok := errors.AsType[*connect.Error](err)
	if !ok {
		s.t.Error(err)
		e = connect.NewError(connect.CodeUnknown, err)
	}
	return answer{err: e, replayed: e.Meta().Get(idemconnect.ReplayedHeader) == "true"}
}

func request(body string) *pb.SimpleRequest {
	return &pb.SimpleRequest{Payload: &pb.Payload{Body: []byte(body)}}
}

func response(body any) *connect.Response[pb.SimpleResponse] {
	return connect.NewResponse(&pb.SimpleResponse{Payload: &pb.Payload{Body: fmt.Append(nil, body)}, Username: "u", GrpclbRouteType: 1})
}

// wantProblem checks what is answered instead, and that nothing internal is in it.
func (a answer) wantProblem(t *testing.T, code connect.Code, reason idemconnect.Reason, retry bool) {
	t.Helper()
	got, retries := "", false
	if a.err != nil {
		for _, d := range a.err.Details() {
			value, err := d.Value()
			must(t, err)
			switch d := value.(type) {
			case *errdetails.ErrorInfo:
				got = d.GetReason()
			case *errdetails.RetryInfo:
				retries = d.GetRetryDelay().AsDuration() > 0
			}
		}
	}
	if a.code() != code || got != string(reason) || retries != retry {
		t.Errorf("got %v %q %v, want %v for %s", a.err, got, retries, code, reason)
	}
	for _, inside := range []string{"idem:", "payments", "sql", "panic", "goroutine", "secret"} {
		if a.err != nil && strings.Contains(a.err.Error(), inside) {
			t.Errorf("%s tells of the inside: %v", reason, a.err)
		}
	}
}
