// Package idemclient is the client's side of the Idempotency-Key header: a
// transport that sets a key once for each request and sends the request again,
// with that key, while an answer may still come.
//
//	transport, err := idemclient.NewTransport(nil)
//	client := &http.Client{Transport: transport}
//	res, err := client.Post(url, "application/json", body) // safe to repeat, if the server honours keys
//
// It is for servers that honour the key, such as those behind package idemhttp:
// a server that takes no notice of it may act more than once.
//
// A key of the caller's own wins over a new one: the header of the request, or else
// [ContextWithKey]. Whoever has to repeat a request after a crash of its own
// process needs one, stored before the first try.
//
// Sent again is what failed without an answer, and what was answered 409 with
// Retry-After (it is in progress), 425, 429, 502, 503 or 504; but no stored
// answer (Idempotency-Replayed), and never 400 or 422, since the same request
// would get the same answer. Retry-After is honoured.
//
// A request can only be repeated if its body can: by its GetBody, as
// http.NewRequest sets it for bodies in memory, or else from a copy that is made
// before the first try if it is no longer than [WithMaxBody]. A longer one is
// sent once, with a key.
package idemclient
