package idemsql

import (
	"hash/maphash"
	"strconv"
	"sync/atomic"

	"github.com/idem-go/idem/driver"
)

// ClaimMode says whether a key is looked up before it is claimed.
type ClaimMode uint8

// The claim modes.
const (
	// Auto chooses by what the store has seen: it reads first for keys that it
	// has met lately, and for all while duplicates are frequent. A lease on
	// SQLite always reads first.
	Auto ClaimMode = 0
	// ClaimFirst saves a statement for a new key.
	ClaimFirst ClaimMode = 1
	// ReadFirst answers a duplicate with one read, without a transaction and
	// without a lock.
	ReadFirst ClaimMode = 2
)

// String returns the mode's name.
func (m ClaimMode) String() string {
	switch m {
	case Auto:
		return "Auto"
	case ClaimFirst:
		return "ClaimFirst"
	case ReadFirst:
		return "ReadFirst"
	}
	return "ClaimMode(" + strconv.Itoa(int(m)) + ")"
}

// chooser chooses between the modes. What it remembers is a guess that costs a
// statement when it is wrong, so it is small, forgets, and locks nothing.
type chooser struct {
	seed   maphash.Seed
	share  atomic.Int64 // moving average of duplicates, in 1/scale percent
	lately [1024]atomic.Uint64
}

const (
	scale = 1000
	decay = 32 // about how many claims the average looks back on
)

func newChooser() *chooser { return &chooser{seed: maphash.MakeSeed()} }

func (c *chooser) slot(k driver.Key) (h uint64, slot *atomic.Uint64) {
	h = maphash.Comparable(c.seed, k)
	return h, &c.lately[h%uint64(len(c.lately))]
}

// readFirst reports whether a claim of k had better look first, if that pays
// for itself from a share of duplicates on, in percent.
func (c *chooser) readFirst(k driver.Key, threshold int64) bool {
	h, slot := c.slot(k)
	return slot.Load() == h || c.duplicates(threshold)
}

// duplicates reports whether their share is at least threshold percent.
func (c *chooser) duplicates(threshold int64) bool { return c.share.Load() >= threshold*scale }

// saw notes how a claim of k ended. Two that note at once may lose one note.
func (c *chooser) saw(k driver.Key, d driver.Decision) {
	h, slot := c.slot(k)
	slot.Store(h)
	var duplicate int64
	if d != driver.DecisionClaimed {
		duplicate = 100 * scale
	}
	old := c.share.Load()
	c.share.Store(old + (duplicate-old)/decay)
}
