package idemconnect_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"connectrpc.com/connect"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/idem-go/idem"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	"github.com/idem-go/idem/transports/idemconnect"
)

// A client calls a procedure twice with one key.
func ExampleInterceptor() {
	const procedure = pb.TestService_UnaryCall_FullMethodName
	store, _ := idemmemory.New()
	payments, _ := idem.NewOperation("payments", store, idem.AtLeastOnce)
	protect, err := idemconnect.Interceptor(map[string]*idem.Operation{procedure: payments}, idemconnect.WithoutPrincipal())
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle(procedure, connect.NewUnaryHandlerSimple(procedure, func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		fmt.Println("charging the card")
		return &pb.SimpleResponse{Username: "receipt 1"}, nil
	}, connect.WithInterceptors(protect)))
	server := httptest.NewServer(mux)
	defer server.Close()

	client := connect.NewClient[pb.SimpleRequest, pb.SimpleResponse](server.Client(), server.URL+procedure)
	for range 2 {
		req := connect.NewRequest(&pb.SimpleRequest{})
		req.Header().Set(idemconnect.KeyHeader, "pay-42")
		res, err := client.CallUnary(context.Background(), req)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s %q\n", res.Msg.GetUsername(), res.Header().Get(idemconnect.ReplayedHeader))
	}
	// Output:
	// charging the card
	// receipt 1 ""
	// receipt 1 "true"
}
