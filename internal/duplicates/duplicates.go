// Package duplicates guesses whether a claim will find that its key has a
// record, by what this process has seen.
package duplicates

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/idem-go/idem/driver"
)

// Guess remembers. It is wrong at times, at the cost of a round trip, so it is
// small, forgets, and locks nothing. It is safe for concurrent use.
type Guess struct {
	seed   maphash.Seed
	share  atomic.Int64 // moving average of duplicates, in 1/scale percent
	lately [1024]atomic.Uint64
}

const (
	scale = 1000
	decay = 32 // about how many claims the average looks back on
)

// New returns a guess that has seen nothing.
func New() *Guess { return &Guess{seed: maphash.MakeSeed()} }

func (g *Guess) slot(k driver.Key) (h uint64, slot *atomic.Uint64) {
	h = maphash.Comparable(g.seed, k)
	return h, &g.lately[h%uint64(len(g.lately))]
}

// Likely reports whether k was noted lately, or the share of duplicates is
// at least threshold percent.
func (g *Guess) Likely(k driver.Key, threshold int64) bool {
	h, slot := g.slot(k)
	return slot.Load() == h || g.Frequent(threshold)
}

// Frequent reports whether the share of duplicates is at least threshold percent.
func (g *Guess) Frequent(threshold int64) bool { return g.share.Load() >= threshold*scale }

// Note remembers k as seen lately.
func (g *Guess) Note(k driver.Key) {
	h, slot := g.slot(k)
	slot.Store(h)
}

// Count counts how a claim ended. Of two at once one may not count.
func (g *Guess) Count(d driver.Decision) {
	var duplicate int64
	if d != driver.DecisionClaimed {
		duplicate = 100 * scale
	}
	old := g.share.Load()
	g.share.Store(old + (duplicate-old)/decay)
}
