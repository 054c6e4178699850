package idemmemory

import (
	"container/heap"
	"context"
	"fmt"
	"time"

	"github.com/idem-go/idem/driver"
)

// A record is in the heap of deadlines and, if it may be dropped early, in one
// list. The deadline is when the record may have changed its class by itself,
// or earlier: a transition that puts it off leaves it in place, and the record
// is looked at again when it is reached. So claims, renewals and completions
// cost O(1), and each record is sifted a few times in its life.

// class is the order in which a full store drops records.
type class uint8

const (
	past      class = iota // kept only so that its fence is remembered
	stub                   // released
	tombstone              // expired
	completed              // of a lease: it would run again
	classes
)

// kept is the class of what is never dropped before its time.
const kept = classes

// classify says what the record is to a full store, and when that may change.
func (r *record) classify(now time.Time) (class, time.Time) {
	state, until := r.at(now)
	switch {
	case state == 0:
		return past, r.gone()
	case state == driver.StateReleased:
		return stub, until
	case state == driver.StateExpired:
		return tombstone, until
	case state == driver.StateCompleted && r.guarantee == driver.AtLeastOnce:
		return completed, until
	case state == driver.StateClaimed && r.onLapse == driver.TakeOver:
		return kept, r.gone()
	case state == driver.StateClaimed:
		return kept, after(r.end, r.retention)
	default:
		return kept, until
	}
}

// sweepPerClaim is how many deadlines the claim of a new key looks at, so that
// what is over does not stay until the store is full.
const sweepPerClaim = 2

// makeRoom makes room for one record; false if there is none.
func (s *Store) makeRoom(now time.Time) bool {
	for range sweepPerClaim {
		s.step(now)
	}
	for len(s.records) >= s.maxRecords {
		if more, _ := s.step(now); !more {
			return s.dropIdle()
		}
	}
	return true
}

// dropIdle drops the record that is missed least.
func (s *Store) dropIdle() bool {
	for c := range s.idle {
		if r := s.idle[c].first; r != nil {
			s.drop(r)
			return true
		}
	}
	return false
}

// step handles the first deadline if it has been reached: the record is
// dropped, or gets the class and the deadline that it has now.
func (s *Store) step(now time.Time) (more, dropped bool) {
	if len(s.due) == 0 || now.Before(s.due[0].due) {
		return false, false
	}
	r := s.due[0]
	if !now.Before(r.gone()) {
		s.drop(r)
		return true, true
	}
	c, due := r.classify(now)
	s.enlist(r, c)
	r.due = due
	heap.Fix(&s.due, r.index)
	return true, false
}

// Purge implements [driver.Purger].
func (s *Store) Purge(ctx context.Context, p driver.PurgeParams) (driver.PurgeResult, error) {
	if p.Limit < 1 {
		return driver.PurgeResult{}, fmt.Errorf("%w: purging %d records", driver.ErrInvalid, p.Limit)
	}
	if err := ctx.Err(); err != nil {
		return driver.PurgeResult{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var res driver.PurgeResult
	for res.Purged < p.Limit {
		more, dropped := s.step(now)
		if !more {
			break
		}
		if dropped {
			res.Purged++
		}
	}
	return res, nil
}

// add takes in a record that has just been claimed.
func (s *Store) add(r *record, now time.Time) {
	r.class, r.due = r.classify(now)
	heap.Push(&s.due, r)
}

// moved notes that the record has changed.
func (s *Store) moved(r *record, now time.Time) {
	c, due := r.classify(now)
	s.enlist(r, c)
	if due.Before(r.due) {
		r.due = due
		heap.Fix(&s.due, r.index)
	}
}

// drop forgets the record, but not how high fences have risen.
func (s *Store) drop(r *record) {
	s.fence = max(s.fence, r.fence)
	s.enlist(r, kept)
	heap.Remove(&s.due, r.index)
	delete(s.records, r.key)
}

// enlist puts the record at the end of its class's list, unless it is in it.
func (s *Store) enlist(r *record, c class) {
	if r.class == c {
		return
	}
	if r.class != kept {
		s.idle[r.class].remove(r)
	}
	r.class = c
	if c != kept {
		s.idle[c].append(r)
	}
}

// list is a doubly linked list through the records.
type list struct{ first, last *record }

func (l *list) append(r *record) {
	r.prev, r.next = l.last, nil
	if l.last == nil {
		l.first = r
	} else {
		l.last.next = r
	}
	l.last = r
}

func (l *list) remove(r *record) {
	if r.prev == nil {
		l.first = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		l.last = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.prev, r.next = nil, nil
}

// deadlines is a [heap.Interface], the earliest first.
type deadlines []*record

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].due.Before(d[j].due) }
func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}

// Push implements [heap.Interface].
func (d *deadlines) Push(x any) {
	r, _ := x.(*record) // nothing else is ever pushed
	r.index = len(*d)
	*d = append(*d, r)
}

// Pop implements [heap.Interface].
func (d *deadlines) Pop() any {
	last := len(*d) - 1
	r := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return r
}
