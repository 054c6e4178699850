package conformance

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/idem-go/idem"
)

var executeInboxCases = []testCase{
	{
		"execute/inbox-commits-once",
		"Under ExactlyOnce idem.Execute commits the effect and the outcome once, and duplicates on any handle get the value.",
		needs{inboxes}, inboxCommitsOnce,
	},
	{
		"execute/inbox-rolls-back",
		"Under ExactlyOnce a failure rolls the effect back, comes back unchanged, and the next call runs.",
		needs{inboxes}, inboxRollsBack,
	},
	{
		"execute/one-of-many-inboxes-commits",
		"Of many calls under ExactlyOnce at once, over several handles, one commits its effect, and all that wait get its value.",
		needs{inboxes}, oneInboxCommits,
	},
	{
		"execute/wrapped-driver-keeps-its-promise",
		"On a wrapper that changes keys, idem.Execute keeps every guarantee that the driver declares, apart from the driver's own keys.",
		nil, wrappedDriverKeepsItsPromise,
	},
}

// writes is a function that writes one effect.
func (s *suite) writes(id string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) { return "ran", s.h.Effect(ctx, id) }
}

func inboxCommitsOnce(s *suite) {
	id := newID()
	res, err := s.call(s.operation(s.d, idem.ExactlyOnce), s.writes(id))
	if err != nil || res.Value != "ran" || !res.Recorded {
		s.Errorf("the call gave %q (recorded %v), %v; want a run", res.Value, res.Recorded, err)
	}
	for _, d := range s.handles(2) {
		s.replays(s.operation(d, idem.ExactlyOnce), "ran")
	}
	s.effects(id, 1)
}

func inboxRollsBack(s *suite) {
	id := newID()
	op := s.operation(s.d, idem.ExactlyOnce)
	failure := errors.New("declined")
	_, err := s.call(op, func(ctx context.Context) (string, error) {
		_, err := s.writes(id)(ctx)
		return "", errors.Join(failure, err)
	})
	if !errors.Is(err, failure) {
		s.Errorf("the failure came back as %v", err)
	}
	s.effects(id, 0)
	if res, err := s.call(op, s.writes(id)); err != nil || res.Replayed || res.Attempt != 1 {
		s.Errorf("the next call: replayed %v, attempt %d, %v; want a first run", res.Replayed, res.Attempt, err)
	}
	s.effects(id, 1)
}

func oneInboxCommits(s *suite) {
	id := newID()
	var ops []*idem.Operation
	for _, d := range s.handles(4) {
		ops = append(ops, s.operation(d, idem.ExactlyOnce, idem.WithWait(long)))
	}
	var replayed atomic.Int32
	s.parallel(16, func(i int) {
		res, err := s.call(ops[i%len(ops)], s.writes(id))
		if err != nil || res.Value != "ran" {
			s.Errorf("a call gave %q, %v; want the one run's value", res.Value, err)
		}
		if res.Replayed {
			replayed.Add(1)
		}
	})
	if n := replayed.Load(); n != 15 {
		s.Errorf("%d calls were replayed, want 15", n)
	}
	s.effects(id, 1)
}

func wrappedDriverKeepsItsPromise(s *suite) {
	for _, g := range []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce, idem.ExactlyOnce} {
		if !s.caps.Guarantees.Has(g) {
			continue
		}
		scope := idem.WithScope(g.String())
		s.runs(s.operation(prefixed{s.d}, g), scope)
		s.replays(s.operation(prefixed{s.d}, g), "ran", scope)
		s.runs(s.operation(s.d, g), scope)
	}
}
