// Package idemwatermill makes Watermill handlers safe against redelivery.
//
//	once, err := idemwatermill.Middleware(orders, idemwatermill.Metadata("idempotency-key"))
//	poison, err := middleware.PoisonQueueWithFilter(pub, "orders.dead", idemwatermill.IsDeadLetter)
//	router.AddMiddleware(poison, once)
//
// A message is marked as done after its handler has succeeded, never before:
// a failed handler's message is delivered again and runs again. (A middleware
// that marks first, as Watermill's Deduplicator does, drops it.) What a handler wants to have published
// is stored with its success: a duplicate of a finished message publishes the
// same messages with the same UUIDs, in case the router died before it had.
//
//	what happened                                       the middleware returns
//	the handler succeeded, now or before                its messages: the router publishes them and acknowledges
//	the handler failed                                  its error: it is delivered again
//	it is in progress elsewhere                         waits for its end, 30 s by default, then an error
//	the store cannot be asked or read                   an error
//	a guard's key was used before, the outcome unknown  no message and no error: it is acknowledged
//	the outcome has expired                             likewise
//	no key, or the key was used for another message     an error of which [IsDeadLetter] is true
//	a guard's handler failed                            likewise: it never runs again
//	the messages to publish were too large to keep      likewise
package idemwatermill
