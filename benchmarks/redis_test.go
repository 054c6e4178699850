package benchmarks_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/idem-go/idem"
	idemredis "github.com/idem-go/idem/drivers/redis"
)

// The least that a careful hand would send for a first call, as two scripts.
var (
	rawClaim    = rueidis.NewLuaScript(`return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2], 'GET')`)
	rawComplete = rueidis.NewLuaScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end`)
)

const rawOutcome = "an outcome of 30 bytes, or so."

// redis is a client, and what it does by hand and through idem.
type redis struct {
	client rueidis.Client
	op     *idem.Operation
	run    string
	keys   atomic.Int64
}

func openRedis(b *testing.B) *redis {
	b.Helper()
	addr := os.Getenv("IDEM_TEST_REDIS")
	if addr == "" {
		b.Skip("IDEM_TEST_REDIS is not set: run `make bench`")
	}
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(client.Close)
	var id [6]byte
	_, _ = rand.Read(id[:]) // never fails
	r := &redis{client: client, run: "bench-" + hex.EncodeToString(id[:]) + ":"}
	store, err := idemredis.New(client, idemredis.WithPrefix(r.run))
	if err != nil {
		b.Fatal(err)
	}
	r.op, err = idem.NewOperation("payments", store, idem.AtLeastOnce)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

func (r *redis) key() string { return strconv.FormatInt(r.keys.Add(1), 10) }

func (r *redis) first(ctx context.Context) error {
	_, err := idem.Execute(ctx, r.key(), charge, idem.On(r.op))
	return err
}

func (r *redis) rawFirst(ctx context.Context) error {
	key, token := r.run+"raw:"+r.key(), "0123456789abcdef"
	err := rawClaim.Exec(ctx, r.client, []string{key}, []string{token, "30000"}).Error()
	if err != nil && !rueidis.IsRedisNil(err) {
		return err
	}
	return rawComplete.Exec(ctx, r.client, []string{key}, []string{token, rawOutcome, "60000"}).Error()
}

// replayed keys are so many that calls of one seldom meet in this process,
// where they would be answered from memory.
const replayed = 4096

func (r *redis) replay(ctx context.Context) error {
	_, err := idem.Execute(ctx, "done-"+strconv.FormatInt(r.keys.Add(1)%replayed, 10), charge, idem.On(r.op))
	return err
}

func (r *redis) rawReplay(ctx context.Context) error {
	key := r.run + "raw-done-" + strconv.FormatInt(r.keys.Add(1)%replayed, 10)
	_, err := r.client.Do(ctx, r.client.B().Get().Key(key).Build()).AsBytes()
	return err
}

// fill makes what is replayed.
func (r *redis) fill(ctx context.Context) error {
	var commands rueidis.Commands
	for i := range replayed {
		key := r.run + "raw-done-" + strconv.Itoa(i)
		commands = append(commands, r.client.B().Set().Key(key).Value(rawOutcome).ExSeconds(600).Build())
	}
	for _, res := range r.client.DoMulti(ctx, commands...) {
		if err := res.Error(); err != nil {
			return err
		}
	}
	var wg sync.WaitGroup
	failures := make(chan error, 64)
	for range cap(failures) {
		wg.Go(func() {
			for range replayed / cap(failures) {
				if err := r.replay(ctx); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(failures)
	return <-failures
}

// BenchmarkRedis reports, beside the time of a call, "ratio": how many calls
// idem does while the same work by hand is done once. Both take turns of a few
// milliseconds in one run, so that what else the machine does hits both.
func BenchmarkRedis(b *testing.B) {
	for _, bench := range []struct {
		name      string
		idem, raw func(*redis, context.Context) error
	}{
		{"first", (*redis).first, (*redis).rawFirst},
		{"replay", (*redis).replay, (*redis).rawReplay},
	} {
		for _, goroutines := range []int{1, 64} {
			b.Run(bench.name+"/"+strconv.Itoa(goroutines), func(b *testing.B) {
				r := openRedis(b)
				ctx := context.Background() // that of a benchmark makes the client start goroutines
				if bench.name == "replay" {
					if err := r.fill(ctx); err != nil {
						b.Fatal(err)
					}
				}
				var ours, theirs time.Duration
				b.ResetTimer()
				for left := b.N; left > 0; {
					n := min(left, 20*goroutines)
					left -= n
					ours += r.together(b, goroutines, n, func() error { return bench.idem(r, ctx) })
					b.StopTimer()
					theirs += r.together(b, goroutines, n, func() error { return bench.raw(r, ctx) })
					b.StartTimer()
				}
				b.ReportMetric(float64(theirs)/float64(ours), "ratio")
			})
		}
	}
}

// together does n calls in as many goroutines and returns how long they take.
func (*redis) together(b *testing.B, goroutines, n int, call func() error) time.Duration {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	start := time.Now()
	for range goroutines {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := call(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}
