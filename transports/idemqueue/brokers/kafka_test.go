package brokers_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/idem-go/idem/transports/idemkafka"
)

const partitions = 6

// The broker is franz-go's own in-memory stand-in for Kafka (kfake): it speaks the protocol, groups and offsets
// included, on a socket, but is not Kafka.
var kafkaBroker = broker{
	pause: 3 * time.Second,
	start: func(t *testing.T, topic string) string {
		t.Helper()
		c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, topic), kfake.GroupMinSessionTimeout(time.Second))
		must(t, err)
		t.Cleanup(c.Close)
		return c.ListenAddrs()[0]
	},
	publish: func(ctx context.Context, do task, keys []string) error {
		return onKafka(do.Address, func(c *kgo.Client) error {
			records := make([]*kgo.Record, 0, len(keys))
			for _, key := range keys {
				records = append(records, &kgo.Record{Topic: do.Topic, Headers: []kgo.RecordHeader{{Key: keyHeader, Value: []byte(key)}}})
			}
			return c.ProduceSync(ctx, records...).FirstErr()
		})
	},
	consume: func(ctx context.Context, do task, c *consumer) error {
		handle, err := handler(c, idemkafka.Header(keyHeader))
		if err != nil {
			return err
		}
		dead := func(context.Context, *kgo.Record, error) error { return nil }
		return onKafka(do.Address, func(client *kgo.Client) error { return idemkafka.Run(ctx, client, handle, dead) },
			kgo.ConsumerGroup("billing"), kgo.ConsumeTopics(do.Topic), kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
			kgo.SessionTimeout(time.Second), kgo.HeartbeatInterval(200*time.Millisecond), kgo.FetchMaxWait(200*time.Millisecond),
			kgo.FetchMaxPartitionBytes(2000)) // a commit every few messages
	},
	left: func(ctx context.Context, do task, _ bool) (n int, err error) {
		err = onKafka(do.Address, func(c *kgo.Client) error {
			ends, err := offsets(ctx, c, do.Topic)
			if err != nil {
				return err
			}
			done, err := committed(ctx, c, do.Topic)
			for p, end := range ends {
				n += int(end - done[p])
			}
			return err
		})
		return n, err
	},
}

func onKafka(address string, f func(c *kgo.Client) error, opts ...kgo.Opt) error {
	c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(address))...)
	if err != nil {
		return err
	}
	defer c.Close()
	return f(c)
}

// offsets are the ends of the topic's partitions.
func offsets(ctx context.Context, c *kgo.Client, topic string) (map[int32]int64, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	for i := range int32(partitions) {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = i, -1
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	res, err := req.RequestWith(ctx, c)
	if err != nil {
		return nil, err
	}
	ends := map[int32]int64{}
	for _, p := range res.Topics[0].Partitions {
		ends[p.Partition] = p.Offset
	}
	return ends, nil
}

// committed are the offsets up to which the group is done.
func committed(ctx context.Context, c *kgo.Client, topic string) (map[int32]int64, error) {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = "billing"
	t := kmsg.NewOffsetFetchRequestTopic()
	t.Topic = topic
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = "billing"
	gt := kmsg.NewOffsetFetchRequestGroupTopic()
	gt.Topic = topic
	for i := range int32(partitions) {
		t.Partitions = append(t.Partitions, i)
		gt.Partitions = append(gt.Partitions, i)
	}
	req.Topics = append(req.Topics, t)
	g.Topics = append(g.Topics, gt)
	req.Groups = append(req.Groups, g)
	res, err := req.RequestWith(ctx, c)
	if err != nil {
		return nil, err
	}
	done := map[int32]int64{}
	for _, t := range res.Topics {
		for _, p := range t.Partitions {
			done[p.Partition] = max(p.Offset, 0)
		}
	}
	for _, g := range res.Groups {
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				done[p.Partition] = max(p.Offset, 0)
			}
		}
	}
	return done, nil
}
