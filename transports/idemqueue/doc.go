// Package idemqueue makes message handlers safe against redelivery, for any
// broker: it turns a handler into a function that says what to do with the message.
//
//	handle, err := idemqueue.Handler(orders, key, func(ctx context.Context, m Message) error { … })
//	…
//	switch d := handle(ctx, m); d.Action {
//	case idemqueue.Ack:        m.Ack()
//	case idemqueue.Retry:      m.NakWithDelay(d.Delay)
//	case idemqueue.DeadLetter: m.Term()
//	}
//
// The message is marked as done after the handler has succeeded, never before: a
// failed delivery frees the key, and the redelivery runs. What is in progress
// is never acknowledged.
//
//	what happened                                       decision
//	the handler succeeded, now or before                Ack
//	the handler failed                                  Retry; DeadLetter if the failure is stored
//	it is in progress elsewhere                         Retry, after the lease's rest
//	the store cannot be asked or read                   Retry
//	a guard's key was used before, the outcome unknown  Ack
//	the outcome has expired or could not be kept        Ack; DeadLetter if a [Processor]'s result was not kept
//	no key, or the key was used for another message     DeadLetter
package idemqueue
