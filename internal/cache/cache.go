// Package cache is a bounded map whose entries end at a time. When it is full,
// an entry goes that was not read since the last time somebody had to go
// (the clock algorithm: F. Corbató, 1968), so that a read takes no exclusive lock.
package cache

import (
	"sync"
	"sync/atomic"
	"time"
)

// Cache maps keys to values. It is used concurrently. It has no goroutine and no
// timer: an entry that has ended goes when it is met.
type Cache[K comparable, V any] struct {
	mu    sync.RWMutex
	index map[K]int // into slots
	slots []slot[K, V]
	hand  int
	size  int
}

type slot[K comparable, V any] struct {
	key   K
	value V
	until time.Time
	used  *atomic.Bool // nil: the slot is free
}

// New returns a cache of at most size entries.
func New[K comparable, V any](size int) *Cache[K, V] {
	return &Cache[K, V]{index: make(map[K]int), size: size}
}

// Get returns the value of key, if it has one that has not ended.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	i, ok := c.index[key]
	if !ok || !time.Now().Before(c.slots[i].until) {
		return value, false
	}
	if s := &c.slots[i]; !s.used.Load() { // a write that is not needed slows the other readers down
		s.used.Store(true)
	}
	return c.slots[i].value, true
}

// Put sets the value of key until the given time.
func (c *Cache[K, V]) Put(key K, value V, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, ok := c.index[key]
	if !ok {
		i = c.free()
	}
	c.slots[i] = slot[K, V]{key: key, value: value, until: until, used: new(atomic.Bool)}
	c.index[key] = i
}

// free returns a slot that may be taken.
func (c *Cache[K, V]) free() int {
	if len(c.slots) < c.size {
		c.slots = append(c.slots, slot[K, V]{})
		return len(c.slots) - 1
	}
	for now := time.Now(); ; {
		i := c.hand
		c.hand = (c.hand + 1) % len(c.slots)
		s := &c.slots[i]
		if s.used == nil {
			return i
		}
		if now.Before(s.until) && s.used.Swap(false) {
			continue
		}
		delete(c.index, s.key)
		return i
	}
}

// Delete removes key.
func (c *Cache[K, V]) Delete(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i, ok := c.index[key]; ok {
		delete(c.index, key)
		c.slots[i] = slot[K, V]{}
	}
}

// Len returns how many entries there are, ended ones included.
func (c *Cache[K, V]) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.index)
}
