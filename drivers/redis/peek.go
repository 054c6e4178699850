package idemredis

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/idem-go/idem/driver"
)

// peekShare is the share of duplicates, in percent, from which a claim looks
// before it sends the script, which costs the server many times a GET.
const peekShare = 80

// peeks reports whether a claim had better look first.
func (s *Store) peeks(p *driver.ClaimParams) bool {
	return p.Tombstone == 0 && outlives(p.Retention) && s.client.Mode() != rueidis.ClientModeCluster &&
		s.guess.Likely(p.Key, peekShare)
}

// outlives reports whether a record is kept no longer than an outcome that is
// kept for d: after less than that the server keeps the fence.
func outlives(d time.Duration) bool { return d == driver.RetainForever || d >= driver.FenceMemory }

// saw remembers what a claim has shown.
func (s *Store) saw(p *driver.ClaimParams, res driver.ClaimResult) {
	s.guess.Count(res.Decision)
	if res.Decision == driver.DecisionCompleted {
		s.guess.Note(p.Key)
	}
	if !res.DecidedAt.IsZero() {
		s.clock.saw(res.DecidedAt)
	}
}

// peek answers a claim by a plain read, if all that it takes is an outcome that
// is kept for as long as its record: that the server still has it proves that
// it is not over. Anything else is for the script to decide.
func (s *Store) peek(ctx context.Context, p *driver.ClaimParams) (driver.ClaimResult, bool) {
	now, ok := s.clock.now()
	if !ok {
		return driver.ClaimResult{}, false
	}
	// Arbitrary commands count as writes: a client may send reads to replicas.
	raw, err := s.client.Do(ctx, s.client.B().Arbitrary("GET").Keys(s.physical(p.Key)).Build()).AsBytes()
	if err != nil {
		return driver.ClaimResult{}, false
	}
	r, ok := decode(raw)
	if !ok || !r.replays(raw) || r.format > p.Format {
		return driver.ClaimResult{}, false
	}
	res := r.answer(driver.DecisionCompleted, p)
	res.LifeLeft = max(left(now, after(r.end, r.retention)), precision)
	res.CompletedAt = clock(r.end)
	return res, true
}

// replays reports whether raw is a sound record of this layout with an outcome
// that lasts as long as the record (write.lua).
func (r *record) replays(raw []byte) bool {
	return string(raw[:4]) == magic && raw[4] == layout && r.state == driver.StateCompleted && len(r.outcome) > 0 &&
		r.attempt > 0 && r.format > 0 && r.generation > 0 && r.fence >= r.generation && r.claimedAt > 0 && r.end > 0 &&
		(r.onLapse == driver.TakeOver || r.onLapse == driver.Uncertain) && r.tombstone == 0 &&
		(r.retention == forever || r.retention >= int64(driver.FenceMemory/precision))
}

func after(t, d int64) int64 {
	if d == forever || t+d > never {
		return never
	}
	return t + d
}

// serverClock is what a script last said the time is. A guess from it only
// tells how long an outcome will live on; nothing is decided by it.
type serverClock struct{ last atomic.Pointer[reading] }

type reading struct {
	server int64 // µs
	at     time.Time
}

// trusted is how long a reading is gone on from: it bounds what a step of either clock may do.
const trusted = time.Second

func (c *serverClock) saw(now time.Time) {
	if last := c.last.Load(); last == nil || time.Since(last.at) > trusted/10 {
		c.last.Store(&reading{server: now.UnixMicro(), at: time.Now()})
	}
}

func (c *serverClock) now() (now int64, ok bool) {
	last := c.last.Load()
	if last == nil {
		return 0, false
	}
	since := time.Since(last.at)
	return last.server + since.Microseconds(), since < trusted
}
