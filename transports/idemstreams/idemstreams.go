// Package idemstreams drives Redis Streams, by rueidis, by the decisions of idemqueue.
//
//	c := idemstreams.Consumer{Client: client, Stream: "orders", Group: "billing", Name: hostname}
//	handle, err := idemqueue.Handler(orders, idemstreams.Field("idempotency-key"), charge)
//	err = c.Run(ctx, handle)
//
// A stream has no negative acknowledgement: what is not acknowledged stays pending and is
// claimed by some consumer of the group once it has been idle for as long as Consumer.Idle says.
package idemstreams

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/transports/idemqueue"
)

// The defaults of a Consumer.
const (
	DefaultIdle  = 30 * time.Second
	DefaultCount = 10
)

// poll is how long a read blocks, and how often pending entries are looked for at least.
const poll = 500 * time.Millisecond

// Entry is an entry of a stream.
type Entry = rueidis.XRangeEntry

// Field takes the key from a field of the entry.
func Field(name string) idem.KeyFunc[Entry] {
	return func(e Entry) (string, error) { return e.FieldValues[name], nil }
}

// ID takes the key from the entry's ID, which tells redeliveries apart, not a
// producer that sent twice.
func ID(e Entry) (string, error) { return e.ID, nil }

// Consumer is one consumer of a group.
type Consumer struct {
	Client rueidis.Client
	Stream string
	Group  string        // made, if there is none, at the stream's beginning
	Name   string        // of the consumer in the group
	Idle   time.Duration // after which a pending entry is handled again; 0: DefaultIdle
	Count  int64         // how many entries are read at once; 0: DefaultCount
	Dead   string        // the stream that dead letters are moved to; "": they are acknowledged and gone
}

// Run handles entries, one after the other, until ctx ends, and then returns
// nil; else it returns what Redis answers.
func (c Consumer) Run(ctx context.Context, handle func(context.Context, Entry) idemqueue.Decision) error {
	if c.Idle == 0 {
		c.Idle = DefaultIdle
	}
	if c.Count == 0 {
		c.Count = DefaultCount
	}
	b := c.Client.B()
	err := c.Client.Do(ctx, b.XgroupCreate().Key(c.Stream).Group(c.Group).Id("0").Mkstream().Build()).Error()
	if err != nil && !strings.HasPrefix(err.Error(), "BUSYGROUP") {
		return c.ended(ctx, err)
	}
	var looked time.Time
	for {
		var entries []Entry
		if now := time.Now(); now.Sub(looked) >= min(poll, c.Idle) {
			looked = now
			entries, err = c.claim(ctx)
		} else {
			entries, err = c.read(ctx)
		}
		for i := 0; i < len(entries) && err == nil; i++ {
			err = c.settle(ctx, entries[i], handle(ctx, entries[i]))
		}
		if err != nil || ctx.Err() != nil {
			return c.ended(ctx, err)
		}
	}
}

func (Consumer) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was told to end
	}
	return err
}

// claim returns pending entries that nobody has touched for a while.
func (c Consumer) claim(ctx context.Context) ([]Entry, error) {
	answer, err := c.Client.Do(ctx, c.Client.B().Xautoclaim().Key(c.Stream).Group(c.Group).Consumer(c.Name).
		MinIdleTime(strconv.FormatInt(max(c.Idle.Milliseconds(), 1), 10)).Start("0").Count(c.Count).Build()).ToArray()
	if err != nil || len(answer) < 2 {
		return nil, err
	}
	return answer[1].AsXRange()
}

// read returns new entries.
func (c Consumer) read(ctx context.Context) ([]Entry, error) {
	streams, err := c.Client.Do(ctx, c.Client.B().Xreadgroup().Group(c.Group, c.Name).Count(c.Count).
		Block(poll.Milliseconds()).Streams().Key(c.Stream).Id(">").Build()).AsXRead()
	if rueidis.IsRedisNil(err) {
		return nil, nil
	}
	return streams[c.Stream], err
}

// settle tells Redis what was decided. What is to be handled again stays pending.
func (c Consumer) settle(ctx context.Context, e Entry, d idemqueue.Decision) error {
	ctx = context.WithoutCancel(ctx)
	switch d.Action {
	case idemqueue.Retry:
		return nil
	case idemqueue.DeadLetter:
		if c.Dead == "" {
			break
		}
		add := c.Client.B().Xadd().Key(c.Dead).Id("*").FieldValue()
		for name, value := range e.FieldValues {
			add = add.FieldValue(name, value)
		}
		if err := c.Client.Do(ctx, add.Build()).Error(); err != nil {
			return errors.Join(errors.New("idemstreams: a dead letter could not be moved"), err)
		}
	case idemqueue.Ack:
	}
	return c.Client.Do(ctx, c.Client.B().Xack().Key(c.Stream).Group(c.Group).Id(e.ID).Build()).Error()
}
