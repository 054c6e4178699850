// Package idem makes operations safe to retry.
//
// Clients retry, brokers deliver again, processes die between an effect and
// its record. [Execute] runs a function under an idempotency key: the first
// call runs it, a duplicate gets the first one's answer.
//
//	store, err := idemmemory.New()
//	payments, err := idem.NewOperation("payments", store, idem.AtLeastOnce)
//	receipt, err := idem.Execute(ctx, "pay-42", func(ctx context.Context) (Receipt, error) {
//		return gateway.Charge(ctx, 500)
//	}, idem.On(payments))
//
// # Guarantees
//
// Exactly-once delivery does not exist: between an effect and its record there
// is always a moment in which a process can die. An operation chooses what
// happens then:
//
//   - [AtLeastOnce] runs again after the lease has ended. The effect should
//     tolerate that, or refuse stale runs by [Attempt.Fence].
//   - [AtMostOnce] never runs again. The outcome is unknown until somebody
//     settles it with [Operation.Resolve].
//   - [ExactlyOnce] puts effect and record into one transaction of the
//     database that the driver keeps its records in. It says nothing of effects elsewhere.
//
// The packages below drivers keep the records: drivers/memory for one process,
// drivers/sql for databases, drivers/redis for Redis and Valkey. Package driver
// is for authors of others, and package conformance proves them. The packages
// below transports carry the guarantees to where calls come in: HTTP, queues, events.
//
// # Known limits
//
// The guarantees hold as far as the store keeps what it has acknowledged; see
// [Operation.Verify]. A function that ignores its context goes on after its lease
// is lost. A key protects what is done inside the function, nothing before or after it.
package idem
