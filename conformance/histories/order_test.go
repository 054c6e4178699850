package histories

import (
	"errors"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/idem-go/idem/driver"
)

var errNoAnswer = errors.New("no answer")

// told is a history with these calls; each has begun when the one before was answered.
func told(calls []call, answers []answer) *history {
	h := newHistory(0, "key")
	for i, c := range calls {
		c.from, c.to = time.Duration(2*i+1)*time.Minute, time.Duration(2*i+2)*time.Minute
		if answers[i].unknown() {
			c.to = never
		}
		h.calls, h.answer = append(h.calls, c), append(h.answer, answers[i])
	}
	return h
}

func TestCallWithoutAnAnswerMayHappenAtAnyLaterMomentOrNever(t *testing.T) {
	t.Parallel()
	claim := func(token byte) call {
		return call{method: claims, token: token, lease: time.Hour, onLapse: driver.TakeOver}
	}
	granted := answer{claim: driver.ClaimResult{
		Decision: driver.DecisionClaimed, Fence: 7, Generation: 7, Attempt: 1, LeaseLeft: time.Hour,
	}}
	lost, unknown := answer{lost: true}, answer{err: errNoAnswer}
	complete := call{method: completes, token: 'a', outcome: "x"}
	release := call{method: releases, token: 'a'}
	replay := answer{claim: driver.ClaimResult{
		Decision: driver.DecisionCompleted, Fence: 7, Generation: 7, Attempt: 1, Outcome: []byte("x"),
	}}
	inFlight := granted
	inFlight.claim.Decision, inFlight.claim.LeaseLeft = driver.DecisionInFlight, time.Minute
	for what, e := range map[string]struct {
		calls   []call
		answers []answer
		illegal bool
	}{
		"it comes last, long after all others": {
			calls: []call{claim('a'), complete}, answers: []answer{granted, unknown},
		},
		"it happened": {
			calls: []call{claim('a'), complete, claim('b')}, answers: []answer{granted, unknown, replay},
		},
		"it did not happen": {
			calls: []call{claim('a'), complete, claim('b')}, answers: []answer{granted, unknown, inFlight},
		},
		"it happened later": {
			calls:   []call{claim('a'), complete, claim('b'), claim('b')},
			answers: []answer{granted, unknown, inFlight, replay},
		},
		"it cannot be undone": {
			calls:   []call{claim('a'), complete, claim('b'), claim('b')},
			answers: []answer{granted, unknown, replay, inFlight}, illegal: true,
		},
		"it did not happen before it was sent": {
			calls:   []call{claim('a'), claim('b'), complete},
			answers: []answer{granted, replay, unknown}, illegal: true,
		},
		"an answer that contradicts it": {
			calls: []call{claim('a'), release, complete}, answers: []answer{granted, {}, {}}, illegal: true,
		},
		"an answer that follows from it": {
			calls: []call{claim('a'), release, complete}, answers: []answer{granted, unknown, lost},
		},
	} {
		want := porcupine.Ok
		if e.illegal {
			want = porcupine.Illegal
		}
		if o := told(e.calls, e.answers).check(model{precision: time.Microsecond}); o.result != want {
			t.Errorf("%s: %v, want %v", what, o.result, want)
		}
	}
}
