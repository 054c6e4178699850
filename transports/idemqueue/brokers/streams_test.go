package brokers_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/idem-go/idem/internal/testenv"
	"github.com/idem-go/idem/transports/idemqueue"
	"github.com/idem-go/idem/transports/idemstreams"
)

var streamsBroker = broker{
	pause: 500 * time.Millisecond,
	start: func(t *testing.T, topic string) string {
		t.Helper()
		address := testenv.Backend(t, testenv.Redis)
		t.Cleanup(func() {
			must(t, onRedis(address, func(c rueidis.Client) error {
				return c.Do(context.Background(), c.B().Del().Key(topic).Build()).Error()
			}))
		})
		return address
	},
	publish: func(ctx context.Context, do task, keys []string) error {
		return onRedis(do.Address, func(c rueidis.Client) error {
			cmds := make(rueidis.Commands, 0, len(keys))
			for _, key := range keys {
				cmds = append(cmds, c.B().Xadd().Key(do.Topic).Id("*").FieldValue().FieldValue(keyHeader, key).Build())
			}
			for _, res := range c.DoMulti(ctx, cmds...) {
				if err := res.Error(); err != nil {
					return err
				}
			}
			return nil
		})
	},
	consume: func(ctx context.Context, do task, c *consumer) error {
		handle, err := handler(c, idemstreams.Field(keyHeader))
		if err != nil {
			return err
		}
		return onRedis(do.Address, func(client rueidis.Client) error {
			consumer := idemstreams.Consumer{
				Client: client, Stream: do.Topic, Group: "billing", Name: rand.Text(), Idle: lease,
			}
			return consumer.Run(ctx, func(ctx context.Context, e idemstreams.Entry) idemqueue.Decision {
				d := handle(ctx, e)
				if forgotten() {
					d.Action = idemqueue.Retry
				}
				return d
			})
		})
	},
	left: func(ctx context.Context, do task, _ bool) (n int, err error) {
		err = onRedis(do.Address, func(c rueidis.Client) error {
			groups, err := c.Do(ctx, c.B().XinfoGroups().Key(do.Topic).Build()).ToArray()
			if err != nil || len(groups) == 0 {
				n = 1
				return err
			}
			group, err := groups[0].AsMap()
			if err != nil {
				return err
			}
			for _, name := range []string{"pending", "lag"} {
				field := group[name]
				some, err := field.AsInt64()
				if err != nil {
					return err
				}
				n += int(some)
			}
			return nil
		})
		return n, err
	},
}

func onRedis(address string, f func(c rueidis.Client) error) error {
	o, err := rueidis.ParseURL(address)
	if err != nil {
		return err
	}
	o.ForceSingleClient, o.DisableCache = true, true
	c, err := rueidis.NewClient(o)
	if err != nil {
		return err
	}
	defer c.Close()
	return f(c)
}
