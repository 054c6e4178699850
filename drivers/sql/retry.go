package idemsql

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/idem-go/idem/driver"
)

// BusyWait is how long a call tries again when other writers keep it out, if
// its context does not end before. One statement's own wait for a lock (the
// pool's busy_timeout) may come on top. After that the call returns
// driver.ErrBusy: nothing took effect.
const BusyWait = 10 * time.Second

// The pauses between the attempts grow from the first to the second of these.
const (
	firstPause = time.Millisecond
	lastPause  = 50 * time.Millisecond
)

// patience bounds the waiting of one call.
type patience struct {
	until time.Time // zero: nothing has kept it out yet
	pause time.Duration
	lost  int // how many more lost connections it bears
}

// lostTries is how often a call is sent again whose connection broke. A pool
// may hold many broken ones, but a server that is down is to be reported soon.
const lostTries = 3

func newPatience() patience { return patience{pause: firstPause, lost: lostTries} }

// wait waits a jittered pause after an attempt that failed by cause.
func (p *patience) wait(ctx context.Context, cause error) error {
	d := p.next()
	if p.until.IsZero() {
		p.until = time.Now().Add(BusyWait)
	}
	if time.Now().Add(d).After(p.until) {
		return fmt.Errorf("%w for %v: %w", driver.ErrBusy, BusyWait, cause)
	}
	if err := sleep(ctx, d); err != nil {
		return fmt.Errorf("%w: %w: %w", driver.ErrBusy, err, cause)
	}
	return nil
}

// next is the next pause.
func (p *patience) next() time.Duration {
	d := p.pause/2 + rand.N(p.pause/2+1) //nolint:gosec // jitter is no secret
	p.pause = min(2*p.pause, lastPause)
	return d
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// again runs f until it fails by something else than another writer, or a
// connection that broke a few times.
func (s *Store) again(ctx context.Context, p patience, f func() error) error {
	for {
		err := f()
		if err != nil && ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			err = errors.Join(ctx.Err(), err) // a server says in words of its own that it was cancelled
		}
		if err != nil && p.lost > 0 && ctx.Err() == nil && s.lost(err) {
			p.lost--
			if sleep(ctx, p.next()) != nil {
				return err
			}
			continue
		}
		if err == nil || !s.is(err, kindLocked) {
			return err
		}
		if err := p.wait(ctx, err); err != nil {
			return err
		}
	}
}

// reading runs a read.
func (s *Store) reading(ctx context.Context, f func() error) error {
	return s.again(ctx, newPatience(), f)
}

// writing runs a write that is a transaction of its own, and that knows itself
// when it is sent again because its reply was lost.
func (s *Store) writing(ctx context.Context, f func() error) error {
	return s.patiently(ctx, newPatience(), f)
}

// writingOnce is writing for what would not know itself.
func (s *Store) writingOnce(ctx context.Context, f func() error) error {
	p := newPatience()
	p.lost = 0
	return s.patiently(ctx, p, f)
}

func (s *Store) patiently(ctx context.Context, p patience, f func() error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return s.again(ctx, p, f)
}

// queueWait bounds how long a call waits for its turn. The turns are taken in
// order, so it comes, unless somebody holds his for that long.
const queueWait = time.Minute

var errQueue = errors.New("idemsql: other writers of this store")

// enter waits for its turn among the writers of this store. Polling the
// database's lock has no order, so some would starve; and who waits here holds
// no connection.
func (s *Store) enter(ctx context.Context) error {
	if s.tryEnter() {
		return nil
	}
	t := time.NewTimer(queueWait)
	defer t.Stop()
	select {
	case s.queue <- struct{}{}:
		return nil
	case <-t.C:
		return fmt.Errorf("%w for %v: %w", driver.ErrBusy, queueWait, errQueue)
	case <-ctx.Done():
		return fmt.Errorf("%w: %w: %w", driver.ErrBusy, ctx.Err(), errQueue)
	}
}

func (s *Store) tryEnter() bool {
	if s.queue == nil {
		return true
	}
	select {
	case s.queue <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s *Store) leave() {
	if s.queue != nil {
		<-s.queue
	}
}
