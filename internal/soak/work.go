package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/conformance/faults"
	"github.com/idem-go/idem/driver"
)

const (
	workers       = 16
	keysAnEpoch   = 100 // of each guarantee
	callsAnEpoch  = 60  // of each worker
	leaseTTL      = 2 * time.Second
	retention     = 10 * time.Minute // far longer than an epoch
	maxWait       = 3 * time.Second
	auditDeadline = time.Minute
)

// soak is the run on one store.
type soak struct {
	*backend
	*ledger

	seed    uint64
	sides   []map[idem.Guarantee]*idem.Operation // of each handle
	auditor map[idem.Guarantee]*idem.Operation
	faults  injected
	answers answers
	runs    atomic.Int64
	again   atomic.Int64 // runs after a takeover or a release
	audited atomic.Int64
	epoch   int
}

// answers counts how calls end.
type answers struct {
	calls, fresh, replayed, failed, inProgress, unknown, store, cancelled, panicked atomic.Int64
}

func newSoak(b *backend, seed uint64) (*soak, error) {
	s := &soak{backend: b, ledger: newLedger(), seed: seed}
	for i, d := range b.handles {
		plan := faults.Seeded(seed+uint64(i), share, ways...)
		side, err := operations(faults.Inject(d, s.faults.counting(i, plan)))
		if err != nil {
			return nil, err
		}
		s.sides = append(s.sides, side)
	}
	var err error
	s.auditor, err = operations(b.clean)
	return s, err
}

// operations are one of each guarantee that the store has.
func operations(d driver.Driver) (map[idem.Guarantee]*idem.Operation, error) {
	all := make(map[idem.Guarantee]*idem.Operation)
	for _, g := range []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce, idem.ExactlyOnce} {
		if !d.Capabilities().Guarantees.Has(g) {
			continue
		}
		opts := []idem.OperationOption{idem.WithRetention(retention), idem.WithLogger(slog.New(slog.DiscardHandler))}
		if g != idem.ExactlyOnce {
			opts = append(opts, idem.WithLeaseTTL(leaseTTL))
		}
		op, err := idem.NewOperation(idem.Alias(g.String()), d, g, opts...)
		if err != nil {
			return nil, err
		}
		all[g] = op
	}
	return all, nil
}

// work runs epochs until the context ends: some keys, many calls for each,
// then an audit of all.
func (s *soak) work(ctx context.Context) {
	for ctx.Err() == nil {
		s.epoch++
		since, before := s.violations(), s.servers()
		var wg sync.WaitGroup
		for w := range workers {
			rng := newRand(s.seed, uint64(s.epoch*workers+w)) //nolint:gosec // a number of a worker
			wg.Go(func() {
				for range callsAnEpoch {
					if ctx.Err() == nil {
						s.call(rng)
					}
				}
			})
		}
		wg.Wait()
		s.audit()
		if s.servers() != before {
			s.excuse(since)
		}
		s.forget()
	}
}

// servers are the store's masters, where a failover may lose what was acknowledged.
func (s *soak) servers() string {
	if s.masters == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), auditDeadline)
	defer cancel()
	return s.masters(ctx)
}

func (s *soak) prefix() string { return fmt.Sprintf("epoch %d, ", s.epoch) }

// call makes one call, with what it will do drawn beforehand.
func (s *soak) call(rng *rand.Rand) {
	side := s.sides[rng.IntN(len(s.sides))]
	g := idem.Guarantee(1 + rng.IntN(len(side))) //nolint:gosec // 1 to 3
	key := fmt.Sprintf("%s%v %d", s.prefix(), g, rng.IntN(keysAnEpoch))
	plan := s.draw(rng, g)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if plan.cancelAfter > 0 {
		ctx, cancel = context.WithTimeout(ctx, plan.cancelAfter)
		defer cancel()
	}
	s.answers.calls.Add(1)
	defer func() {
		if v := recover(); v != nil {
			s.answers.panicked.Add(1)
			if v != panicked {
				s.violationf("%s: panic: %v", key, v)
			}
		}
	}()
	res, err := idem.ExecuteResult(ctx, key, func(ctx context.Context) (string, error) { return s.run(ctx, key, g, plan) },
		idem.On(side[g]), idem.WithWait(plan.wait), idem.WithFingerprint("the request of "+key))
	s.judge(key, g, res, err)
	time.Sleep(plan.think)
}

// plan is what one call will do.
type plan struct {
	wait, cancelAfter, length, think time.Duration
	end                              end
}

// end is how a function ends.
type end int

const (
	succeeds end = iota
	refuses      // with a refusal
	givesUp      // with a setback
	panics
)

// panicked is what functions panic with.
const panicked = "a bug"

// refusal is an answer, and is stored where failures are.
type refusal struct{ run string }

func (e *refusal) Error() string { return e.run }

// setback lets the next call run.
type setback struct{}

func (*setback) Error() string   { return "passing" }
func (*setback) Retryable() bool { return true }

func (s *soak) draw(rng *rand.Rand, g idem.Guarantee) (p plan) {
	p.think = between(rng, 0, 4*time.Millisecond)
	p.length = between(rng, 0, 5*time.Millisecond)
	if rng.IntN(4) == 0 {
		p.wait = between(rng, time.Millisecond, maxWait)
	}
	switch n := rng.IntN(200); {
	case n < 10:
		p.end = refuses
	case n < 30:
		p.end = givesUp
	case n < 35:
		p.end = panics
	case n < 50:
		p.cancelAfter = between(rng, time.Millisecond, 30*time.Millisecond)
	case n < 52 && (g != idem.ExactlyOnce || s.name != "SQLite"): // where it does not hold everybody up
		p.length = between(rng, leaseTTL/2, 2*leaseTTL)
	}
	return p
}

// run is the function of an operation.
func (s *soak) run(ctx context.Context, key string, g idem.Guarantee, p plan) (string, error) {
	a, ok := idem.FromContext(ctx)
	if !ok {
		return "", errors.New("soak: not in a run")
	}
	name := fmt.Sprint("run ", s.runs.Add(1))
	if a.Number() > 1 {
		s.again.Add(1)
	}
	run := s.enter(ctx, key, g, a.Fence())
	defer s.leave(run)
	if !pause(ctx, p.length) {
		return "", ctx.Err()
	}
	if g == idem.ExactlyOnce {
		if err := s.inbox.effect(ctx, key); err != nil {
			return "", err
		}
	} else {
		s.effect(run)
	}
	switch p.end {
	case refuses:
		return "", &refusal{name}
	case givesUp:
		return "", &setback{}
	case panics:
		panic(panicked)
	default:
		return name, nil
	}
}

// judge sorts the answer, and holds it against the ledger.
func (s *soak) judge(key string, g idem.Guarantee, res idem.Result[string], err error) {
	n := &s.answers
	e, ours := errors.AsType[*idem.Error](err)
	replay, failure := errors.AsType[*idem.ReplayedError](err)
	domain, isDomain := errors.AsType[*refusal](err)
	switch {
	case err == nil && res.Replayed:
		n.replayed.Add(1)
		s.recorded(key, g, res.Value)
	case err == nil:
		n.fresh.Add(1)
		if res.Recorded {
			s.recorded(key, g, res.Value)
		}
	case failure && !ours:
		n.replayed.Add(1)
		s.recorded(key, g, replay.Message)
	case isDomain && !ours:
		n.failed.Add(1)
		if res.Recorded {
			s.recorded(key, g, domain.run)
		}
	case !ours:
		n.failed.Add(1)
	case errors.Is(e.Reason, idem.ErrInProgress):
		n.inProgress.Add(1)
	case errors.Is(e.Reason, idem.ErrOutcomeUnknown):
		n.unknown.Add(1)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		n.cancelled.Add(1)
	case errors.Is(e.Reason, idem.ErrStore), errors.Is(e.Reason, idem.ErrLeaseLost):
		n.store.Add(1)
	default:
		s.violationf("%s: %v", key, err)
	}
}

// audit asks for every key of the epoch once more, through a handle without
// faults: what was recorded is replayed, and every inbox has one effect.
func (s *soak) audit() {
	ctx, cancel := context.WithTimeout(context.Background(), auditDeadline)
	defer cancel()
	counts := map[string]int{}
	if s.inbox != nil {
		var err error
		if counts, err = s.inbox.effects(ctx, s.prefix()); err != nil {
			s.violationf("counting effects: %v", err)
			return
		}
	}
	for g, op := range s.auditor {
		for i := range keysAnEpoch {
			key := fmt.Sprintf("%s%v %d", s.prefix(), g, i)
			known := s.known(key)
			if g == idem.ExactlyOnce {
				s.count(counts[key])
				if n := counts[key]; n > 1 || n == 0 && known != "" {
					s.violationf("%s: %d effects, the outcome is %q", key, n, known)
				}
			}
			if known != "" && !s.hopeless() {
				s.audited.Add(1)
				s.replay(ctx, key, op, known)
			}
		}
	}
}

// replay wants the recorded outcome.
func (s *soak) replay(ctx context.Context, key string, op *idem.Operation, known string) {
	value, err := idem.Execute(ctx, key, func(context.Context) (string, error) {
		return "", errors.New("the audit ran it")
	}, idem.On(op), idem.WithFingerprint("the request of "+key))
	if e, ok := errors.AsType[*idem.ReplayedError](err); ok {
		value, err = e.Message, nil
	}
	if err != nil || value != known {
		s.violationf("%s: replays %q, %v; recorded was %q", key, value, err, known)
	}
}
