// Package idemkafka drives Kafka, by franz-go, by the decisions of idemqueue.
//
//	client, err := kgo.NewClient(kgo.ConsumerGroup("billing"), kgo.ConsumeTopics("orders"), kgo.DisableAutoCommit())
//	handle, err := idemqueue.Handler(orders, idemkafka.Header("idempotency-key"), charge)
//	err = idemkafka.Run(ctx, client, handle, dead)
//
// Kafka keeps an offset, not the state of each message: a message that is to
// be tried again holds up those behind it in its partition, and a consumer that dies has the messages since its
// last commit delivered again.
package idemkafka

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/transports/idemqueue"
)

// The pauses before a failed message is handled again where the decision
// names none: the first, and the longest that it grows to.
const (
	FirstPause   = 100 * time.Millisecond
	LongestPause = 5 * time.Second
)

// Header takes the key from a header of the record.
func Header(name string) idem.KeyFunc[*kgo.Record] {
	return func(r *kgo.Record) (string, error) {
		for _, h := range r.Headers {
			if h.Key == name {
				return string(h.Value), nil
			}
		}
		return "", nil
	}
}

// RecordKey takes the key from the record's key, where it identifies the
// message and not, as is usual, what the message is about.
func RecordKey(r *kgo.Record) (string, error) { return string(r.Key), nil }

// Run handles the records that client fetches, those of different partitions
// at the same time, and commits what is done. A dead letter goes to dead, whose
// failure is tried again. Run returns when ctx has ended or the client was
// closed, with nil, and with what the client meets otherwise. The client commits nothing by itself (kgo.DisableAutoCommit).
func Run(
	ctx context.Context, client *kgo.Client,
	handle func(context.Context, *kgo.Record) idemqueue.Decision, dead func(context.Context, *kgo.Record, error) error,
) error {
	for {
		fetches := client.PollFetches(ctx)
		switch err := fetches.Err(); {
		case fetches.IsClientClosed(), ctx.Err() != nil:
			return nil //nolint:nilerr // it was told to end
		case err != nil:
			return err
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		var errs []error
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			wg.Go(func() {
				if err := partition(ctx, client, p.Records, handle, dead); err != nil {
					mu.Lock()
					defer mu.Unlock()
					errs = append(errs, err)
				}
			})
		})
		wg.Wait()
		if err := errors.Join(errs...); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// partition handles records in their order and commits what is done of them.
func partition(
	ctx context.Context, client *kgo.Client, records []*kgo.Record,
	handle func(context.Context, *kgo.Record) idemqueue.Decision, dead func(context.Context, *kgo.Record, error) error,
) error {
	done := 0
	for done < len(records) && settle(ctx, records[done], handle, dead) {
		done++
	}
	if done == 0 {
		return nil
	}
	return client.CommitRecords(context.WithoutCancel(ctx), records[done-1])
}

// settle handles a record until it is done, and reports whether it is: ctx may end before.
func settle(
	ctx context.Context, r *kgo.Record,
	handle func(context.Context, *kgo.Record) idemqueue.Decision, dead func(context.Context, *kgo.Record, error) error,
) bool {
	for pause := FirstPause; ; pause = min(2*pause, LongestPause) {
		d := handle(ctx, r)
		if d.Action == idemqueue.Ack || d.Action == idemqueue.DeadLetter && dead(ctx, r, d.Err) == nil {
			return true
		}
		wait := pause
		if d.Delay > 0 {
			wait = d.Delay
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}
