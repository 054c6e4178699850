package histories

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/idem-go/idem/conformance/faults"
	"github.com/idem-go/idem/driver"
)

const (
	scope  = "histories"
	format = 1
	life   = time.Hour // of what is stored: no history is that long
	share  = 0.08      // of calls that meet a fault
)

// ways are the faults of calls, besides a context that ends.
var ways = []faults.CallFault{{Before: true}, {After: true}, {After: true}, {Delay: 3 * time.Millisecond}}

// fingerprints are what claims carry: mostly the same or none.
var fingerprints = []string{"v1: a", "v1: a", "v1: a", "v1: b", "", "v2: a"}

// history is what happened to one key.
type history struct {
	seed  uint64
	key   driver.Key
	begin time.Time

	mu     sync.Mutex
	tokens []driver.Token // by their names
	lanes  int            // clients, those that came after a crash included
	calls  []call
	answer []answer
}

// newHistory has an empty key.
func newHistory(seed uint64, id string) *history {
	return &history{seed: seed, key: driver.Key{Scope: scope, ID: id}, begin: time.Now()}
}

// client is one process of a history.
type client struct {
	*history

	d      driver.Driver
	rng    *rand.Rand
	lane   int
	handle int
	token  byte // of the latest claim
	holds  bool // as far as it knows
	former byte // a token from before
	leases []time.Duration
	lapses driver.OnLapse
}

// play runs the seed's program with its clients at once.
func (h *history) play(ctx context.Context, handles []driver.Driver, caps driver.Capabilities) {
	rng := rand.New(rand.NewPCG(h.seed, 0))
	count, lapses := 2+rng.IntN(3), driver.TakeOver
	if caps.Guarantees.Has(driver.AtMostOnce) && (rng.IntN(4) == 0 || !caps.Guarantees.Has(driver.AtLeastOnce)) {
		lapses = driver.Uncertain
	}
	var wg sync.WaitGroup
	for range count {
		seed := rng.Uint64()
		c := &client{
			history: h, rng: rand.New(rand.NewPCG(seed, 1)), lane: h.newLane(), handle: rng.IntN(len(handles)),
			lapses: lapses, leases: []time.Duration{3 * time.Millisecond, 10 * time.Millisecond, 40 * time.Millisecond},
		}
		c.d = faults.Inject(handles[c.handle], faults.Seeded(seed, share, ways...))
		steps := 4 + rng.IntN(6)
		wg.Go(func() {
			c.pause(2 * time.Millisecond)
			for range steps {
				c.step(ctx)
			}
		})
	}
	wg.Wait()
}

// step does one thing, by chance and by what the client knows.
func (c *client) step(ctx context.Context) {
	n := c.rng.IntN(100)
	switch {
	case n < 10: // it crashes, and another process comes in its place
		c.crash()
	case n < 25:
		c.pause(20 * time.Millisecond) // leases end
	case n < 35 && c.former != 0: // an owner from before comes back
		c.ask(ctx, []method{renews, completes, releases, claims}[c.rng.IntN(4)], c.former)
	case !c.holds:
		if c.token == 0 || c.rng.IntN(5) > 0 {
			c.former, c.token = c.token, c.newToken()
		}
		c.ask(ctx, claims, c.token)
	case n < 45:
		c.ask(ctx, claims, c.token) // sent again
	case n < 65:
		c.ask(ctx, renews, c.token)
	case n < 83:
		c.ask(ctx, releases, c.token)
	case n < 87:
		c.ask(ctx, doubts, c.token)
	default:
		c.ask(ctx, completes, c.token)
	}
}

func (c *client) pause(most time.Duration) { time.Sleep(time.Duration(c.rng.Int64N(int64(most)))) }

func (c *client) crash() {
	c.former, c.token, c.holds, c.lane = c.token, 0, false, c.newLane()
}

// ask makes the call and learns from the answer.
func (c *client) ask(ctx context.Context, m method, token byte) {
	one := call{client: c.lane, handle: c.handle, method: m, token: token}
	switch m {
	case claims:
		one.onLapse = c.lapses
		one.lease = c.leases[c.rng.IntN(len(c.leases))]
		one.fingerprint = fingerprints[c.rng.IntN(len(fingerprints))]
	case renews:
		one.lease = c.leases[c.rng.IntN(len(c.leases))]
	case completes:
		one.outcome = fmt.Sprintf("outcome %d", c.rng.IntN(100))
	case doubts, releases:
	}
	if c.rng.IntN(20) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.rng.Int64N(int64(3*time.Millisecond))))
		defer cancel()
	}
	a := c.do(ctx, c.d, one)
	switch {
	case a.unknown(): // a client that shows again is drawn as another one
		c.lane = c.newLane()
	case token == c.token && m == claims:
		c.holds = a.claim.Decision == driver.DecisionClaimed
	case token == c.token && (m != renews || a.lost):
		c.holds = false
	}
}

// do makes a call and writes it down with its answer.
func (h *history) do(ctx context.Context, d driver.Driver, c call) answer {
	c.from = time.Since(h.begin)
	a := h.send(ctx, d, c)
	c.to = time.Since(h.begin)
	switch {
	case errors.Is(a.err, driver.ErrLost):
		a = answer{lost: true}
	case errors.Is(a.err, driver.ErrConflict), errors.Is(a.err, driver.ErrBusy):
		return a // for sure nothing happened
	case a.err != nil:
		c.to = never
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls, h.answer = append(h.calls, c), append(h.answer, a)
	return a
}

func (h *history) send(ctx context.Context, d driver.Driver, c call) (a answer) {
	token := h.tokenOf(c.token)
	switch c.method {
	case claims:
		guarantee := driver.AtLeastOnce
		if c.onLapse == driver.Uncertain {
			guarantee = driver.AtMostOnce
		}
		a.claim, a.err = d.Claim(ctx, driver.ClaimParams{
			Key: h.key, Token: token, Fingerprint: []byte(c.fingerprint), Lease: c.lease, OnLapse: c.onLapse,
			Guarantee: guarantee, Retention: life, Format: format,
		})
	case renews:
		var res driver.RenewResult
		res, a.err = d.Renew(ctx, driver.RenewParams{Key: h.key, Token: token, Lease: c.lease})
		a.left = res.LeaseLeft
	case completes, doubts:
		p := driver.CompleteParams{Key: h.key, Token: token, To: driver.StateUncertain, Retention: life, Format: format}
		if c.method == completes {
			p.To, p.Outcome = driver.StateCompleted, []byte(c.outcome)
		}
		var res driver.CompleteResult
		res, a.err = d.Complete(ctx, p)
		a.already = res.Already
	case releases:
		_, a.err = d.Release(ctx, driver.ReleaseParams{Key: h.key, Token: token, Keep: life})
	}
	return a
}

// tokenNames has more names than a program has steps.
const tokenNames = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func (h *history) newToken() byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	var t driver.Token
	for i := range t {
		t[i] = byte(rand.Uint32())
	}
	h.tokens = append(h.tokens, t)
	return tokenNames[len(h.tokens)-1]
}

func (h *history) tokenOf(name byte) driver.Token {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tokens[strings.IndexByte(tokenNames, name)]
}

func (h *history) newLane() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lanes++
	return h.lanes - 1
}
