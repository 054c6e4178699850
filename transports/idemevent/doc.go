// Package idemevent makes listeners of events safe against a second dispatch:
// from an outbox that publishes again, from a process that died half way
// through its listeners.
//
//	d, err := idemevent.NewDispatcher[OrderPaid](events)
//	err = d.Listen("mail the receipt", mail)
//	err = d.Listen("tell the warehouse", tell)
//	…
//	err = d.Dispatch(ctx, event)
//
// Each listener keeps a key space of its own, named explicitly: a dispatch after a failure
// runs only the listeners that have not completed. The name is stored, so it lasts
// longer than the function's.
//
// An event is identified by a method IdempotencyKey() string, or by
// [WithKey]. One without an identity is an error, and no listener runs.
package idemevent
