package idemgrpc_test

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/idem-go/idem"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	"github.com/idem-go/idem/transports/idemgrpc"
)

type charging struct {
	pb.UnimplementedTestServiceServer
}

func (charging) UnaryCall(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	fmt.Println("charging the card")
	return &pb.SimpleResponse{Username: "receipt 1"}, nil
}

// A client calls a method twice with one key.
func ExampleUnaryServerInterceptor() {
	store, _ := idemmemory.New()
	payments, _ := idem.NewOperation("payments", store, idem.AtLeastOnce)
	protect, err := idemgrpc.UnaryServerInterceptor(
		map[string]*idem.Operation{pb.TestService_UnaryCall_FullMethodName: payments}, idemgrpc.WithoutPrincipal())
	if err != nil {
		fmt.Println(err)
		return
	}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(protect))
	pb.RegisterTestServiceServer(server, charging{})
	listener, _ := net.Listen("tcp", "127.0.0.1:0")
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	conn, _ := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(idemgrpc.UnaryClientInterceptor()))
	defer func() { _ = conn.Close() }()
	ctx := metadata.AppendToOutgoingContext(context.Background(), idemgrpc.KeyEntry, "pay-42")
	for range 2 {
		var header metadata.MD
		receipt, err := pb.NewTestServiceClient(conn).UnaryCall(ctx, &pb.SimpleRequest{}, grpc.Header(&header))
		fmt.Println(receipt.GetUsername(), err, header.Get(idemgrpc.ReplayedEntry))
	}
	// Output:
	// charging the card
	// receipt 1 <nil> []
	// receipt 1 <nil> [true]
}
