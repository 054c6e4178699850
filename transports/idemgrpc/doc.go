// Package idemgrpc makes unary gRPC methods safe to retry, by the metadata
// entry idempotency-key.
//
//	protect, err := idemgrpc.UnaryServerInterceptor(map[string]*idem.Operation{
//		pb.Payments_Charge_FullMethodName: payments,
//	}, idemgrpc.WithPrincipal(tenantOf))
//	server := grpc.NewServer(grpc.ChainUnaryInterceptor(recoverer, protect))
//
// The first call of a key runs the handler; a duplicate gets the stored
// message or status, with its details, and the header idempotency-replayed.
// Two calls are duplicates if method, principal and key are the same. Without
// [WithPrincipal], keys are shared by everybody who may call the method: a caller who
// guesses another's key gets the other's answer. Headers and trailers that
// a handler sets are not stored.
//
// What is answered instead is a status with a google.rpc.ErrorInfo of the
// domain [Domain], and a google.rpc.RetryInfo where trying again helps; see
// [Reason]. No text of an error of this library reaches a client.
//
// A client with [UnaryClientInterceptor] sends a key with each call, the same
// in gRPC's own retries of it, and finds an [*idem.Error] in what such a
// server answers.
package idemgrpc
