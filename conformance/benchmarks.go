package conformance

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem/driver"
)

// RunBenchmarks measures what the engine asks of the harness's driver, each
// step as a sub-benchmark, alone ("first-call") and from many goroutines
// ("first-call-parallel"). It measures real time: Bubble and Advance are not
// used.
func RunBenchmarks(b *testing.B, h Harness) {
	b.Helper()
	for _, step := range []struct {
		name  string
		needs need
		run   func(w *worker) error
	}{
		{"first-call", leasesOrGuards, (*worker).firstCall},
		{"given-back", leasesOrGuards, (*worker).givenBack},
		{"replay", leasesOrGuards, (*worker).replay},
		{"renew", leasesOrGuards, (*worker).renew},
		{"inbox", inboxes, (*worker).inbox},
		{"inbox-replay", inboxes, (*worker).inboxReplay},
	} {
		b.Run(step.name, func(b *testing.B) {
			w := newWorker(b, h, step.needs)
			b.ReportAllocs()
			for b.Loop() {
				if err := step.run(w); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(step.name+"-parallel", func(b *testing.B) {
			w := newWorker(b, h, step.needs)
			b.SetParallelism(32)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := step.run(w); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// worker runs the steps, from many goroutines.
type worker struct {
	s    *suite
	tx   driver.Transactor
	keys atomic.Int64

	completed, committed, live driver.ClaimParams
}

func newWorker(b *testing.B, h Harness, needs need) *worker {
	b.Helper()
	d := h.Open(b)
	s := &suite{h: h, d: d, caps: d.Capabilities(), ctx: context.WithValue(b.Context(), driverKey{}, d)}
	if !needs.met(s) {
		b.Skip("needs " + needs.what)
	}
	w := &worker{s: s, completed: s.caller(), live: s.caller(), committed: inbox("committed")}
	w.tx, _ = driver.As[driver.Transactor](d)
	w.live.Key = key("live")
	var err error
	if leasesOrGuards.met(s) {
		err = w.finish(w.completed)
		if err == nil {
			_, err = d.Claim(s.ctx, w.live)
		}
	}
	if err == nil && inboxes.met(s) {
		err = w.transact(w.committed)
	}
	if err != nil {
		b.Fatal(err)
	}
	return w
}

// newKey makes p the first caller of a new key.
func (w *worker) newKey(p driver.ClaimParams) driver.ClaimParams {
	p = again(p)
	p.Key = key("new" + strconv.FormatInt(w.keys.Add(1), 10))
	return p
}

func (w *worker) finish(p driver.ClaimParams) error {
	if _, err := w.s.d.Claim(w.s.ctx, p); err != nil {
		return err
	}
	_, err := w.s.d.Complete(w.s.ctx, completion(p))
	return err
}

func (w *worker) firstCall() error { return w.finish(w.newKey(w.s.caller())) }

func (w *worker) givenBack() error {
	p := w.newKey(w.s.caller())
	if _, err := w.s.d.Claim(w.s.ctx, p); err != nil {
		return err
	}
	_, err := w.s.d.Release(w.s.ctx, driver.ReleaseParams{Key: p.Key, Token: p.Token})
	return err
}

func (w *worker) replay() error {
	_, err := w.s.d.Claim(w.s.ctx, again(w.completed))
	return err
}

func (w *worker) renew() error {
	_, err := w.s.d.Renew(w.s.ctx, driver.RenewParams{Key: w.live.Key, Token: w.live.Token, Lease: long})
	return err
}

func (w *worker) inbox() error { return w.transact(w.newKey(w.committed)) }

func (w *worker) inboxReplay() error { return w.transact(again(w.committed)) }

func (w *worker) transact(p driver.ClaimParams) error {
	for {
		_, err := w.tx.Transact(w.s.ctx, driver.TransactParams{Claim: p}, w.s.effect(p, p.Key.ID))
		if err == nil || !passing(err) {
			return err
		}
	}
}
