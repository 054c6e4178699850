package idemgrpc_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	"github.com/idem-go/idem/transports/idemgrpc"
)

// retries is what a client's service config says: gRPC itself tries again.
const retries = `{"methodConfig": [{"name": [{}], "waitForReady": true, "retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.02s",
	"maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`

func dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultServiceConfig(retries), grpc.WithChainUnaryInterceptor(idemgrpc.UnaryClientInterceptor()),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
	}
}

func TestKeyIsOneForAllOfGRPCsOwnRetriesOfACall(t *testing.T) {
	t.Parallel()
	var keys, attempts []string
	flaky := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		keys = append(keys, md.Get(idemgrpc.KeyEntry)...)
		if attempts = append(attempts, md.Get("grpc-previous-rpc-attempts")...); len(keys)%3 != 0 {
			return nil, status.Error(codes.Unavailable, "try again")
		}
		return h(ctx, req)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(flaky))
	pb.RegisterTestServiceServer(server, &service{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	over := make(chan error, 1)
	go func() { over <- server.Serve(l) }()
	t.Cleanup(func() { server.Stop(); must(t, <-over) })
	conn, err := grpc.NewClient(l.Addr().String(), dialOptions()...)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	client := pb.NewTestServiceClient(conn)
	for _, ctx := range []context.Context{t.Context(), t.Context(), metadata.AppendToOutgoingContext(t.Context(), idemgrpc.KeyEntry, "mine")} {
		_, err = client.EmptyCall(ctx, &pb.Empty{})
		must(t, err)
	}
	if len(keys) != 9 || len(attempts) != 6 {
		t.Fatal(keys, attempts)
	}
	for i := range keys {
		if keys[i] != keys[i-i%3] || len(keys[i]) < 4 {
			t.Error(keys)
		}
	}
	if keys[0] == keys[3] || keys[6] != "mine" {
		t.Error(keys)
	}
}

func TestClientFindsTheReasonInTheStatus(t *testing.T) {
	t.Parallel()
	held := operation(t, stores[0].open(t), idem.AtLeastOnce)
	s := serveOn(t, "127.0.0.1:0", held, dialOptions())
	entered, leave := make(chan struct{}), make(chan struct{})
	s.handle = func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		close(entered)
		<-leave
		return nil, status.Error(codes.NotFound, "the handler's own")
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), idemgrpc.KeyEntry, "k")
	over := make(chan error, 1)
	go func() { _, err := s.client.UnaryCall(ctx, request("500")); over <- err }()
	<-entered
	var e *idem.Error
	_, err := s.client.UnaryCall(ctx, request("500"))
	if !errors.Is(err, idem.ErrInProgress) || status.Code(err) != codes.Aborted || !errors.As(err, &e) ||
		e.RetryAfter <= 0 || e.RetryAfter > idem.DefaultLeaseTTL || !e.Retryable() {
		t.Error(err, e)
	}
	if _, err = s.client.UnaryCall(ctx, request("900")); !errors.Is(err, idem.ErrMismatch) || status.Code(err) != codes.FailedPrecondition {
		t.Error(err)
	}
	close(leave)
	if err := <-over; status.Code(err) != codes.NotFound || errors.As(err, &e) {
		t.Error(err)
	}
	bad := metadata.AppendToOutgoingContext(t.Context(), idemgrpc.KeyEntry, " ")
	if _, err = s.client.UnaryCall(bad, request("500")); !errors.Is(err, idem.ErrInvalidKey) {
		t.Error(err)
	}
	broken := serveOn(t, "127.0.0.1:0", operation(t, &down{stores[0].open(t)}, idem.AtLeastOnce), dialOptions()[1:2])
	if _, err = broken.client.UnaryCall(ctx, request("500")); !errors.Is(err, idem.ErrStore) || status.Code(err) != codes.Unavailable {
		t.Error(err)
	}
}

// TestNestedCallThatMeetsAKeyInProgressFreesItsOwn is DESIGN rule 16 over a wire.
func TestNestedCallThatMeetsAKeyInProgressFreesItsOwn(t *testing.T) {
	t.Parallel()
	inner := serveOn(t, "127.0.0.1:0", operation(t, stores[0].open(t), idem.AtLeastOnce), dialOptions())
	entered, leave := make(chan struct{}), make(chan struct{})
	inner.handle = func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		if inner.runs.Load() == 1 {
			close(entered)
			<-leave
		}
		return response("inner"), nil
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), idemgrpc.KeyEntry, "k")
	over := make(chan error, 1)
	go func() { _, err := inner.client.UnaryCall(ctx, request("500")); over <- err }()
	<-entered

	outer := operation(t, stores[0].open(t), idem.AtLeastOnce)
	call := func(context.Context) (string, error) {
		res, err := inner.client.UnaryCall(ctx, request("500"))
		return string(res.GetPayload().GetBody()), err
	}
	if _, err := idem.Execute(t.Context(), "outer", call, idem.On(outer)); !errors.Is(err, idem.ErrInProgress) {
		t.Error(err)
	}
	if rec, ok, err := outer.Inspect(t.Context(), "outer"); err != nil || ok && rec.State != driver.StateReleased {
		t.Errorf("%+v, %v", rec, err)
	}
	close(leave)
	must(t, <-over)
	if got, err := idem.Execute(t.Context(), "outer", call, idem.On(outer), idem.WithWait(time.Minute)); got != "inner" || err != nil {
		t.Error(got, err)
	}
	if inner.runs.Load() != 1 {
		t.Error(inner.runs.Load(), "runs")
	}
}
