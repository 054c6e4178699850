package idem

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/idem-go/idem/driver"
)

const (
	// minTogether is from how many on claims or completions are sent together:
	// fewer are faster at the same time, each on its own (BenchmarkBatch).
	minTogether = 16

	// linger is how long they wait for those that have not come yet: a call
	// may wait for another process, a function may take its time.
	linger = 5 * time.Millisecond
)

// gathers reports whether calls of the operation can be sent together.
func (op *Operation) gathers() bool {
	_, ok := driver.As[driver.BatchClaimer](op.driver)
	return ok && op.guarantee != ExactlyOnce
}

// gathering sends the claims and the completions of the calls of a batch together.
type gathering struct {
	claims      round[driver.ClaimParams, driver.ClaimAnswer]
	completions round[driver.CompleteParams, driver.CompleteAnswer]
}

// newGathering makes the gathering of n calls of the operation.
func newGathering(op *Operation, n int) *gathering {
	g := new(gathering)
	g.claims.expected, g.completions.expected = n, n
	g.claims.key = func(p driver.ClaimParams) driver.Key { return p.Key }
	g.completions.key = func(p driver.CompleteParams) driver.Key { return p.Key }
	if d, ok := driver.As[driver.BatchClaimer](op.driver); ok {
		g.claims.send = func(ctx context.Context, p []driver.ClaimParams) ([]driver.ClaimAnswer, error) {
			res, err := d.ClaimBatch(ctx, driver.ClaimBatchParams{Claims: p})
			return res.Claims, err
		}
	}
	if d, ok := driver.As[driver.BatchCompleter](op.driver); ok {
		g.completions.send = func(ctx context.Context, p []driver.CompleteParams) ([]driver.CompleteAnswer, error) {
			res, err := d.CompleteBatch(ctx, driver.CompleteBatchParams{Completions: p})
			return res.Completions, err
		}
	}
	return g
}

// end waits for what timers have begun.
func (g *gathering) end() {
	g.claims.timers.Wait()
	g.completions.timers.Wait()
}

// batchMember is a call in a gathering. It takes part in each round once; what it has to
// send again it sends itself.
type batchMember struct {
	of        *gathering
	claimed   bool
	completed bool
}

// leave tells the others not to wait for the call any longer.
func (m *batchMember) leave() {
	if !m.claimed {
		m.of.claims.leave()
	}
	if !m.completed {
		m.of.completions.leave()
	}
}

// sendClaim sends the claim, with those of a batch if the call is in one.
func (c *call) sendClaim(ctx context.Context, p driver.ClaimParams) (driver.ClaimResult, error) {
	if m := c.member; m != nil && !m.claimed {
		m.claimed = true
		if a, sent := m.of.claims.join(ctx, p); sent {
			return a.Result, a.Err
		}
	}
	return c.op.driver.Claim(ctx, p)
}

// sendCompletion sends the completion, likewise.
func (c *call) sendCompletion(ctx context.Context, p driver.CompleteParams) (driver.CompleteResult, error) {
	if m := c.member; m != nil && !m.completed {
		m.completed = true
		if a, sent := m.of.completions.join(ctx, p); sent {
			return a.Result, a.Err
		}
	}
	return c.op.driver.Complete(ctx, p)
}

// round is what is sent together, once everybody has come who may, or linger
// after the first. Those who come later make the next one.
type round[P, A any] struct {
	key  func(P) driver.Key
	send func(context.Context, []P) ([]A, error) // nil: each goes on its own

	mu       sync.Mutex
	expected int // calls that may still come
	waiting  []*ticket[P, A]
	timer    *time.Timer
	timers   sync.WaitGroup
}

// ticket is one call's part of a round.
type ticket[P, A any] struct {
	ctx    context.Context //nolint:containedctx // of the call, which waits for its answer
	params P
	done   chan struct{} // closed when it is sent, or the call is to send it itself
	answer A
	sent   bool
}

// join sends params with those of others and waits for the answer. If it was
// not sent, the call has to do so.
func (r *round[P, A]) join(ctx context.Context, params P) (answer A, sent bool) {
	t := &ticket[P, A]{ctx: ctx, params: params, done: make(chan struct{})}
	r.mu.Lock()
	r.expected--
	r.waiting = append(r.waiting, t)
	if r.timer == nil && r.expected > 0 {
		r.timers.Add(1)
		r.timer = time.AfterFunc(linger, func() {
			defer r.timers.Done()
			r.dispatch(r.take(true))
		})
	}
	r.mu.Unlock()
	r.dispatch(r.take(false))
	<-t.done
	return t.answer, t.sent
}

// leave tells that a call does not come.
func (r *round[P, A]) leave() {
	r.mu.Lock()
	r.expected--
	r.mu.Unlock()
	r.dispatch(r.take(false))
}

// take returns what is to be sent now, if anything.
func (r *round[P, A]) take(overdue bool) []*ticket[P, A] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.expected > 0 && !overdue {
		return nil
	}
	if r.timer != nil && r.timer.Stop() {
		r.timers.Done()
	}
	r.timer = nil
	taken := r.waiting
	r.waiting = nil
	return taken
}

// dispatch sends the tickets in the order of their keys, so that statements of two
// processes meet each other's rows in one order.
func (r *round[P, A]) dispatch(tickets []*ticket[P, A]) {
	slices.SortFunc(tickets, func(a, b *ticket[P, A]) int {
		x, y := r.key(a.params), r.key(b.params)
		return cmp.Or(cmp.Compare(x.Scope, y.Scope), cmp.Compare(x.ID, y.ID))
	})
	for batch := range slices.Chunk(tickets, maxBatch) {
		r.sendTogether(batch)
		for _, t := range batch {
			close(t.done)
		}
	}
}

// sendTogether sends the tickets of one batch. On an error of the whole, or a
// panic of the driver, none has a known answer, and each call sends its own again, with its token.
func (r *round[P, A]) sendTogether(tickets []*ticket[P, A]) {
	if r.send == nil || len(tickets) < minTogether {
		return
	}
	params := make([]P, 0, len(tickets))
	for _, t := range tickets {
		params = append(params, t.params)
	}
	var answers []A
	err := guarded(func() (err error) {
		answers, err = r.send(tickets[0].ctx, params)
		return err
	})
	if err != nil || len(answers) != len(tickets) {
		return
	}
	for i, t := range tickets {
		t.answer, t.sent = answers[i], true
	}
}
