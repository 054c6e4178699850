// Package idemhttp makes HTTP handlers safe to retry, by the Idempotency-Key
// header (draft-ietf-httpapi-idempotency-key-header).
//
//	protect, err := idemhttp.New(payments, idemhttp.WithPrincipal(tenantOf))
//	mux.Handle("POST /payments", protect(http.HandlerFunc(pay)))
//
// The first request of a key runs the handler; a duplicate gets the stored
// response. Two requests are duplicates if method, route, principal and key
// are the same. Without [WithPrincipal], keys are shared by everybody who may
// call the route: a caller who guesses another's key gets the other's response.
//
// The response is kept in memory until the handler has returned and its
// outcome is stored. A handler that flushes, or writes more than
// [WithMaxResponse], streams from there on; its duplicates get status and
// headers without the body. Under ExactlyOnce the response always leaves after the
// commit, and flushing is not supported.
//
// What is answered instead of a response is a problem document (RFC 9457); see
// [Problem] for the codes. No text of an error reaches a client.
package idemhttp
