package idemredis

import (
	"context"
	"sync"

	"github.com/idem-go/idem/driver"
)

// Waiters are woken by PUBLISH in the script that ends a claim, on a channel
// that has the record's name, and only if a waiter has marked the record
// (ClaimParams.WaiterHint) or it was resolved: nobody pays for what nobody
// waits for. The other way, invalidation of tracked keys
// (https://redis.io/docs/latest/develop/reference/client-side-caching/), works
// for keys that scripts read too, but fires at every renewal, must be armed
// again each time, and needs RESP3 and a connection to the key's own node. A cluster passes
// PUBLISH on to all its nodes, so one subscriber suffices there.

// watches share one connection. It is open, and one goroutine runs, only while there are any.
type watches struct {
	mu       sync.Mutex
	channels map[string]*channel
	changed  []string      // channels that got their first watch, or lost their last
	wake     chan struct{} // tells the goroutine of them; nil: none runs
}

// channel is what tells of one record.
type channel struct {
	watches map[*watch]struct{}
	ready   chan struct{} // closed once it is subscribed to, or cannot be
	err     error         // why it cannot be
}

type watch struct{ changed func() }

// Watch implements [driver.Watcher]. It returns once the server has confirmed
// the subscription. If the connection breaks, all that watch are told, and it is
// opened again while there are any. Watching the same record from many places
// costs one subscription.
func (s *Store) Watch(ctx context.Context, p driver.WatchParams) (driver.WatchResult, error) {
	if err := ctx.Err(); err != nil {
		return driver.WatchResult{Stop: func() {}}, failed("watch", err)
	}
	name, w := s.physical(p.Key), &watch{changed: p.Changed}
	ch := s.join(name, w)
	stop := sync.OnceFunc(func() { s.watches.leave(name, w) })
	unhook := context.AfterFunc(ctx, stop)
	res := driver.WatchResult{Stop: func() {
		unhook()
		stop()
	}}
	select {
	case <-ch.ready:
		if ch.err == nil {
			return res, nil
		}
		res.Stop()
		return res, failed("watch", ch.err)
	case <-ctx.Done():
		return res, failed("watch", ctx.Err())
	}
}

func (s *Store) join(name string, w *watch) *channel {
	ws := &s.watches
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ch := ws.channels[name]
	if ch == nil {
		ch = &channel{watches: make(map[*watch]struct{}), ready: make(chan struct{})}
		if ws.channels == nil {
			ws.channels = make(map[string]*channel)
		}
		ws.channels[name] = ch
		ws.note(name)
	}
	ch.watches[w] = struct{}{}
	if ws.wake == nil {
		ws.wake = make(chan struct{}, 1)
		go s.listen(ws.wake)
	}
	return ch
}

func (ws *watches) leave(name string, w *watch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ch := ws.channels[name]
	if ch == nil {
		return
	}
	delete(ch.watches, w)
	if len(ch.watches) == 0 {
		delete(ws.channels, name)
		ws.note(name)
	}
}

// note leaves a change to the goroutine.
func (ws *watches) note(name string) {
	ws.changed = append(ws.changed, name)
	select {
	case ws.wake <- struct{}{}:
	default: // it is awake, or not there yet
	}
}

// noteAll makes a new connection subscribe to everything.
func (ws *watches) noteAll() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.changed = ws.changed[:0]
	for name := range ws.channels {
		ws.changed = append(ws.changed, name)
	}
}

// take sorts the noted changes. It is over when nobody watches; then a later watch starts anew.
func (ws *watches) take(subscribed map[string]bool) (joined, left []string, over bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if len(ws.channels) == 0 {
		ws.changed, ws.wake = nil, nil
		return nil, nil, true
	}
	for _, name := range ws.changed {
		switch ch := ws.channels[name]; {
		case ch == nil && subscribed[name]:
			left = append(left, name)
		case ch != nil && !subscribed[name]:
			joined = append(joined, name)
		case ch != nil: // left and joined again before this
			ch.settle(nil)
		}
	}
	ws.changed = ws.changed[:0]
	return joined, left, false
}

// confirm ends the wait of those who watch the channels. Those that cannot be
// subscribed to at the first time are given up; others stay, for the next connection.
func (ws *watches) confirm(names []string, err error) {
	var told []func()
	ws.mu.Lock()
	for _, name := range names {
		ch := ws.channels[name]
		switch {
		case ch == nil:
		case ch.settle(err):
			if err != nil {
				delete(ws.channels, name)
			}
		case err == nil:
			told = ch.all(told) // after a break: what happened meanwhile is not known
		}
	}
	ws.mu.Unlock()
	call(told)
}

// settle ends the wait for a new channel; false if it was over.
func (ch *channel) settle(err error) bool {
	select {
	case <-ch.ready:
		return false
	default:
		ch.err = err
		close(ch.ready)
		return true
	}
}

func (ws *watches) tell(name string) {
	var told []func()
	ws.mu.Lock()
	if ch := ws.channels[name]; ch != nil {
		told = ch.all(nil)
	}
	ws.mu.Unlock()
	call(told)
}

func (ws *watches) tellAll() {
	var told []func()
	ws.mu.Lock()
	for _, ch := range ws.channels {
		told = ch.all(told)
	}
	ws.mu.Unlock()
	call(told)
}

func (ch *channel) all(told []func()) []func() {
	for w := range ch.watches {
		told = append(told, w.changed)
	}
	return told
}

// call runs without the lock: a function may stop its watch.
func call(told []func()) {
	for _, changed := range told {
		changed()
	}
}
