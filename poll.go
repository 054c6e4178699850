package idem

import (
	"context"
	"time"

	"github.com/idem-go/idem/driver"
)

const (
	// The first pause between two questions to the store while another
	// process runs the key; it grows by half up to the longest, which is
	// longer where the store tells of the end.
	firstPoll        = 10 * time.Millisecond
	longestPoll      = 250 * time.Millisecond
	longestWatchPoll = 2 * time.Second
)

// pacer says when to ask the store next for a key that is in flight.
type pacer struct {
	pause time.Duration
	next  time.Time

	changed chan struct{} // the driver tells of a change; nil: it is not asked to
	stop    func()
}

// after returns when to ask again after the answer res.
func (p *pacer) after(res driver.ClaimResult) time.Time {
	now := time.Now()
	longest := longestPoll
	if p.changed != nil {
		longest = longestWatchPoll
	}
	p.next = now.Add(jitter(p.pause))
	if res.LeaseLeft > 0 {
		p.next = earlier(p.next, now.Add(res.LeaseLeft+time.Millisecond))
	}
	p.pause = min(p.pause*3/2, longest)
	return p.next
}

// watch has the driver tell of changes from now on, if it can. It is for waits
// that last: the first look again comes sooner than a subscription.
func (p *pacer) watch(ctx context.Context, c *call) {
	if p.changed != nil || c.op.watcher == nil {
		return
	}
	changed := make(chan struct{}, 1)
	tell := func() {
		select {
		case changed <- struct{}{}:
		default: // it was told already
		}
	}
	res, err := c.op.watcher.Watch(ctx, driver.WatchParams{Key: c.key, Changed: tell})
	if err != nil {
		return // polling serves
	}
	p.changed, p.stop = changed, res.Stop
	tell() // it may have changed before the driver listened
}

// sleep pauses until the next question is due, or the deadline, or a change.
// It reports whether ctx lasted.
func (p *pacer) sleep(ctx context.Context, deadline time.Time) bool {
	d := time.Until(earlier(p.next, deadline))
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.changed:
		return true
	case <-ctx.Done():
		return false
	}
}

// end stops watching.
func (p *pacer) end() {
	if p.stop != nil {
		p.stop()
	}
}
