// Package idemredis keeps idempotency records in Redis (6.2 or newer) and
// Valkey, standalone, behind Sentinel or in a cluster:
//
//	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}})
//	store, err := idemredis.New(client)
//	payments, err := idem.NewOperation("payments", store, idem.AtLeastOnce)
//	err = payments.Verify(ctx)
//
// It upholds AtLeastOnce and AtMostOnce as far as the server keeps what it has
// acknowledged; [Store.Verify] checks what can be checked. What replication may
// lose at a failover, and what to set against it, is in docs/redis.md.
//
// Each operation is one script on one key, decided by the server's clock: a
// call that runs costs two round trips, a replay one that writes nothing. An
// outcome that this process has met lately is read by a plain GET, which is
// enough where the record lasts as long as its outcome: at least
// [driver.FenceMemory], without a tombstone, and not in a cluster, whose nodes
// have a clock each. The client stays its user's: this package neither dials
// nor closes.
//
// Known weaknesses: the effect of a call is not in one transaction with its
// record, so ExactlyOnce is refused; a record lives on one node, so a node that
// is down makes its keys unavailable until its replica is promoted; and a fence
// rises over a failover only if the clocks of the nodes differ by less than
// [driver.FenceMemory].
package idemredis
