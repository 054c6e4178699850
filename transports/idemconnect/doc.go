// Package idemconnect makes unary Connect procedures safe to retry, by the
// header Idempotency-Key, over each of Connect's protocols.
//
//	protect, err := idemconnect.Interceptor(map[string]*idem.Operation{
//		paymentsv1connect.PaymentsChargeProcedure: payments,
//	}, idemconnect.WithPrincipal(tenantOf))
//	path, handler := paymentsv1connect.NewPaymentsHandler(server, connect.WithInterceptors(protect))
//
// It answers as idemgrpc does: see [Reason] and docs/grpc.md. The first call of a
// key runs the handler; a duplicate gets the stored message or error, with its
// details, and the header Idempotency-Replayed. Two calls are duplicates if
// procedure, principal and key are the same. Without [WithPrincipal], keys are
// shared by everybody who may call the procedure. Headers, trailers and an error's
// metadata are not stored. What recovers panics (connect.WithRecover) goes before the
// interceptor, or a panic is an answer like any other. No text of an error of this library reaches a client.
package idemconnect
