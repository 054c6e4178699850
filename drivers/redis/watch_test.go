package idemredis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem/driver"
)

// watched counts how often a record is told of.
type watched struct {
	t    testing.TB
	told chan struct{}
	stop func()
}

func (b *bundle) watch(k driver.Key) *watched {
	b.t.Helper()
	w := &watched{t: b.t, told: make(chan struct{}, 100)}
	res, err := b.Watch(b.t.Context(), driver.WatchParams{Key: k, Changed: func() { w.told <- struct{}{} }})
	must(b.t, err)
	b.t.Cleanup(res.Stop)
	w.stop = res.Stop
	return w
}

func (w *watched) wait(what string) {
	w.t.Helper()
	select {
	case <-w.told:
	case <-time.After(10 * time.Second):
		w.t.Fatalf("%s is not told", what)
	}
}

// wait marks the record as one that somebody waits for.
func (b *bundle) wait(p driver.ClaimParams) {
	b.t.Helper()
	p.Token, p.WaiterHint = newToken(), true
	b.mustClaim(p, driver.DecisionInFlight)
}

func TestWaitersAreToldHoweverAClaimEnds(t *testing.T) {
	t.Parallel()
	for name, options := range onOneAndMany {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t)
			first, second := setupOn(t, dial(t, o)), dial(t, o)
			p := guardOf("completed")
			w := first.watch(p.Key)
			other := first.on(second)
			won := other.mustClaim(p, driver.DecisionClaimed)
			first.wait(p)
			other.mustComplete(p, "x")
			w.wait("a completion")
			_, err := other.Resolve(t.Context(), driver.ResolveParams{Key: p.Key, Fence: won.Fence, Action: driver.ResolveForget, Format: 1})
			must(t, err)
			w.wait("a forgotten record")

			p = guardOf("released")
			w = first.watch(p.Key)
			other.mustClaim(p, driver.DecisionClaimed)
			first.wait(p)
			_, err = other.Release(t.Context(), driver.ReleaseParams{Key: p.Key, Token: p.Token})
			must(t, err)
			w.wait("a release")
		})
	}
}

// A completion that nobody waits for costs no notification.
func TestNobodyIsToldUnlessSomebodyWaits(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p := claimOf("key")
	w := s.watch(p.Key)
	s.mustClaim(p, driver.DecisionClaimed)
	s.mustClaim(claimOf("key"), driver.DecisionInFlight)
	s.mustComplete(p, "x")
	marked := claimOf("marked") // what is told of later has come by when this is
	m := s.watch(marked.Key)
	s.mustClaim(marked, driver.DecisionClaimed)
	s.wait(marked)
	s.mustComplete(marked, "x")
	m.wait("a completion")
	if len(w.told) > 0 {
		t.Error("a completion is told that nobody waited for")
	}
}

// The mark survives a takeover: who waited for the owner before waits still.
func TestWaitersAreToldAfterATakeover(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p := claimOf("key")
	p.Lease = time.Second
	w := s.watch(p.Key)
	s.mustClaim(p, driver.DecisionClaimed)
	s.wait(p)
	next := claimOf("key")
	for s.tryClaim(next) != nil {
		time.Sleep(10 * time.Millisecond)
	}
	s.mustComplete(next, "x")
	w.wait("a completion")
}

// When the connection breaks, all are told, and it is opened again.
func TestABrokenWatchGoesOn(t *testing.T) {
	t.Parallel()
	client, proxy := through(t, standalone(t))
	s := setupOn(t, client)
	p := claimOf("key")
	w := s.watch(p.Key)
	for range 3 {
		proxy.cut()
		w.wait("a break") // once at the break, and once it is mended
		w.wait("the end of a break")
	}
	other := s.on(dial(t, standalone(t)))
	other.mustClaim(p, driver.DecisionClaimed)
	other.wait(p)
	other.mustComplete(p, "x")
	w.wait("a completion")
}

// Many come and go at once on a few records; who stays is told.
func TestWatchesComeAndGo(t *testing.T) {
	t.Parallel()
	s := setup(t)
	var told atomic.Int64
	stay := s.watch(key("key0"))
	parallel(16, func(worker int) {
		for i := range 50 {
			res, err := s.Watch(t.Context(), driver.WatchParams{
				Key: key(fmt.Sprint("key", (worker+i)%4)), Changed: func() { told.Add(1) },
			})
			if err != nil {
				t.Error(err)
			}
			res.Stop()
			res.Stop()
		}
	})
	p := claimOf("key0")
	s.mustClaim(p, driver.DecisionClaimed)
	s.wait(p)
	s.mustComplete(p, "x")
	stay.wait("a completion")
	if n := told.Load(); n > 0 {
		t.Errorf("%d who had gone were told", n)
	}
	stay.stop()
	s.unsubscribed("key0")
}

// unsubscribed waits until nobody is subscribed to the keys.
func (b *bundle) unsubscribed(ids ...string) {
	b.t.Helper()
	for _, id := range ids {
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			n, err := do(b.t, b.client, "PUBSUB", "NUMSUB", b.physical(key(id))).AsIntMap()
			must(b.t, err)
			if n[b.physical(key(id))] == 0 {
				break
			}
			if time.Now().After(deadline) {
				b.t.Fatalf("%s is still subscribed to", id)
			}
		}
	}
}

func TestAWatchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.Watch(ctx, driver.WatchParams{Key: key("key"), Changed: func() {}})
	must(t, err)
	cancel()
	s.unsubscribed("key")
	if res, err := s.Watch(ctx, driver.WatchParams{Key: key("key"), Changed: func() {}}); !errors.Is(err, context.Canceled) || res.Stop == nil {
		t.Errorf("a watch in an ended context returned %v", err)
	}
}

// A server that allows no channel fails the watch, and nothing else.
func TestAForbiddenChannelFailsTheWatchAlone(t *testing.T) {
	t.Parallel()
	server := spawn(t)
	do(t, server.dial(), strings.Fields("ACL SETUSER app on >secret resetchannels ~* +@all")...)
	o := server.options()
	o.Username, o.Password = "app", "secret"
	s := setupOn(t, dial(t, o))
	if _, err := s.Watch(t.Context(), driver.WatchParams{Key: key("key"), Changed: func() {}}); err == nil {
		t.Error("a forbidden channel can be watched")
	}
	p := claimOf("key")
	s.mustClaim(p, driver.DecisionClaimed)
	s.wait(p)
	s.mustComplete(p, "x")
	s.mustClaim(claimOf("key"), driver.DecisionCompleted)
}
