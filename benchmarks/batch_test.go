package benchmarks_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	"github.com/idem-go/idem/internal/testenv"
	"github.com/idem-go/idem/transports/idemqueue"
)

// counted counts the round trips that a driver is asked for: one a method, as the drivers' own tests count on the wire.
type counted struct {
	driver.Driver

	trips atomic.Int64
}

func (c *counted) Claim(ctx context.Context, p driver.ClaimParams) (driver.ClaimResult, error) {
	c.trips.Add(1)
	return c.Driver.Claim(ctx, p)
}

func (c *counted) Complete(ctx context.Context, p driver.CompleteParams) (driver.CompleteResult, error) {
	c.trips.Add(1)
	return c.Driver.Complete(ctx, p)
}

// batches adds what the driver below has of batches.
type batches struct {
	*counted

	claimer   driver.BatchClaimer
	completer driver.BatchCompleter
}

func (b batches) ClaimBatch(ctx context.Context, p driver.ClaimBatchParams) (driver.ClaimBatchResult, error) {
	b.trips.Add(1)
	return b.claimer.ClaimBatch(ctx, p)
}

func (b batches) CompleteBatch(ctx context.Context, p driver.CompleteBatchParams) (driver.CompleteBatchResult, error) {
	b.trips.Add(1)
	return b.completer.CompleteBatch(ctx, p)
}

// BenchmarkBatch handles a thousand messages, in batches of the given size, by turns with single claims: one message
// after the other, and as many at once as a batch has.
func BenchmarkBatch(b *testing.B) {
	for name, open := range map[string]func(*testing.B) *idem.Operation{
		"redis": func(b *testing.B) *idem.Operation { b.Helper(); return openRedis(b).op },
		"postgres": func(b *testing.B) *idem.Operation {
			b.Helper()
			return openServer(b, "postgres", testenv.Backend(b, testenv.Postgres)).lease
		},
		"mysql": func(b *testing.B) *idem.Operation {
			b.Helper()
			return openServer(b, "mysql", testenv.Backend(b, testenv.MySQL)).lease
		},
		"mariadb": func(b *testing.B) *idem.Operation {
			b.Helper()
			return openServer(b, "mysql", testenv.Backend(b, testenv.MariaDB)).lease
		},
	} {
		for _, size := range []int{16, 64, 1000} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) { compareBatches(b, open(b).Driver(), size) })
		}
	}
}

const messages = 1000

func compareBatches(b *testing.B, d driver.Driver, size int) {
	b.Helper()
	c := batches{counted: &counted{Driver: d}}
	var ok, too bool
	c.claimer, ok = driver.As[driver.BatchClaimer](d)
	c.completer, too = driver.As[driver.BatchCompleter](d)
	if !ok || !too {
		b.Skip("the driver takes no batches")
	}
	op, err := idem.NewOperation("batches", c, idem.AtLeastOnce)
	if err != nil {
		b.Fatal(err)
	}
	key := func(i int) (string, error) { return strconv.Itoa(i), nil }
	fn := func(context.Context, int) error { return nil }
	one, err := idemqueue.Handler(op, key, fn)
	if err != nil {
		b.Fatal(err)
	}
	many, err := idemqueue.BatchHandler(op, key, fn)
	if err != nil {
		b.Fatal(err)
	}
	next := 0
	ways := [...]func([]int){
		func(ms []int) {
			for _, m := range ms {
				acknowledged(b, one(b.Context(), m))
			}
		},
		func(ms []int) {
			var all sync.WaitGroup
			for _, m := range ms {
				all.Go(func() { acknowledged(b, one(b.Context(), m)) })
			}
			all.Wait()
		},
		func(ms []int) { acknowledged(b, many(b.Context(), ms)...) },
	}
	var took [len(ways)]time.Duration
	var trips [len(ways)]int64
	for b.Loop() {
		for done := 0; done < messages; done += size {
			for i, way := range ways {
				ms := make([]int, 0, size)
				for range min(size, messages-done) {
					next++
					ms = append(ms, next)
				}
				began, before := time.Now(), c.trips.Load()
				way(ms)
				took[i] += time.Since(began)
				trips[i] += c.trips.Load() - before
			}
		}
	}
	for i, name := range [...]string{"single", "at-once", "batch"} {
		b.ReportMetric(float64(messages*b.N)/took[i].Seconds(), name+"/s")
		b.ReportMetric(float64(trips[i])/float64(b.N), name+"-trips")
	}
	b.ReportMetric(took[1].Seconds()/took[2].Seconds(), "ratio") // of batches to as many single claims at once
}

func acknowledged(b *testing.B, decisions ...idemqueue.Decision) {
	b.Helper()
	for _, d := range decisions {
		if d.Action != idemqueue.Ack {
			b.Error(d)
		}
	}
}
