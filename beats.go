package idem

import (
	"cmp"
	"sync"
	"time"

	"github.com/idem-go/idem/driver"
)

const (
	// maxBatch is how many leases are renewed together at most.
	maxBatch = 100
	// batchShare is the part of a lease by which a renewal may come early to go
	// out with another one.
	batchShare = 6
)

// beats are the heartbeats of an operation whose driver renews many leases in
// one round trip. The timer that goes off first sends what is due soon, too.
type beats struct {
	mu  sync.Mutex
	all map[*heartbeat]struct{}
}

func (b *beats) add(h *heartbeat) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = make(map[*heartbeat]struct{})
	}
	b.all[h] = struct{}{}
}

func (b *beats) remove(h *heartbeat) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.all, h)
}

// due returns the other heartbeats whose renewals may go out with that of h
// now, each marked as under way.
func (b *beats) due(h *heartbeat, now time.Time) []*heartbeat {
	b.mu.Lock()
	others := make([]*heartbeat, 0, len(b.all))
	for other := range b.all {
		if other != h {
			others = append(others, other)
		}
	}
	b.mu.Unlock()
	var due []*heartbeat
	for _, other := range others {
		if len(due) < maxBatch-1 && other.board(now) {
			due = append(due, other)
		}
	}
	return due
}

// board marks a renewal as under way that is due soon, and reports whether it is.
func (h *heartbeat) board(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.halted || h.lost || h.batched || h.pending != nil || h.final() || !now.Before(h.last) ||
		h.cuts && !now.Before(h.cut()) || h.next().After(now.Add(h.lease/batchShare)) {
		return false
	}
	if h.cuts {
		h.timer.Reset(time.Until(h.cut())) // whether the batch is answered or not
	}
	h.batched = true
	return true
}

// params is the renewal that h asks for now.
func (h *heartbeat) params(now time.Time) driver.RenewParams {
	return driver.RenewParams{Key: h.c.key, Token: h.c.token, Lease: min(h.lease, h.last.Sub(now))}
}

// renewTogether renews the lease of h and those of others, and hands out the
// answers. A run that has returned meanwhile takes no notice of its own.
func (h *heartbeat) renewTogether(renewing *lazyContext, others []*heartbeat) (driver.RenewResult, error) {
	sent := time.Now()
	p := driver.RenewBatchParams{Renewals: []driver.RenewParams{h.params(sent)}}
	for _, o := range others {
		p.Renewals = append(p.Renewals, o.params(sent))
	}
	res, err := h.c.op.batch.RenewBatch(renewing, p)
	answer := func(i int) (driver.RenewResult, error) {
		if err != nil || i >= len(res.Renewals) {
			return driver.RenewResult{}, cmp.Or(err, driver.ErrUnknown)
		}
		return res.Renewals[i].Result, res.Renewals[i].Err
	}
	for i, o := range others {
		o.alight(sent, answer, i+1)
	}
	return answer(0)
}

// alight takes the answer of a renewal that went out with another one.
func (h *heartbeat) alight(sent time.Time, answer func(int) (driver.RenewResult, error), i int) {
	res, err := answer(i)
	h.mu.Lock()
	h.batched = false
	lost := h.renewed(sent, res, err)
	if lost != nil {
		h.ticks.Add(1)
	}
	h.mu.Unlock()
	if lost != nil {
		defer h.ticks.Done()
		h.c.tell(h.c.run, *lost)
	}
}
