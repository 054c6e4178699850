package idem_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
)

// telling is a spy that tells of completions.
type telling struct {
	*spy

	mu      sync.Mutex
	changed map[*func()]bool
	watched atomic.Int64
	broken  bool
}

func (s *telling) Watch(_ context.Context, p driver.WatchParams) (driver.WatchResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched.Add(1)
	if s.broken {
		return driver.WatchResult{}, errors.New("no subscriptions here")
	}
	if s.changed == nil {
		s.changed = map[*func()]bool{}
	}
	s.changed[&p.Changed] = true
	p.Changed() // at once, too
	return driver.WatchResult{Stop: func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.changed, &p.Changed)
	}}, nil
}

func (s *telling) Complete(ctx context.Context, p driver.CompleteParams) (driver.CompleteResult, error) {
	res, err := s.spy.Complete(ctx, p)
	s.mu.Lock()
	defer s.mu.Unlock()
	for changed := range s.changed {
		for range 3 { // spurious ones cost nothing
			(*changed)()
		}
	}
	return res, err
}

func TestWaiterIsWokenByTheStoreThatTells(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, pay := &telling{spy: newSpy(t)}, new(charge)
		busy(t, store, idem.AtLeastOnce, time.Minute, nil)
		start := time.Now()
		got, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(operationOn(t, store, idem.AtLeastOnce)), idem.WithWait(time.Hour))
		if err != nil || got.Amount != 7 || time.Since(start) != time.Minute {
			t.Fatalf("%v, %v, after %v", got, err, time.Since(start))
		}
		if n := store.claimed.Load(); n > 60 { // polling alone asks some 240 times
			t.Error(n, "claims in a minute")
		}
		if len(store.changed) != 0 {
			t.Error("it watches on")
		}
	})
}

func TestShortWaitsDoNotSubscribe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &telling{spy: newSpy(t)}
		busy(t, store, idem.AtLeastOnce, time.Minute, nil)
		_, err := idem.Execute(t.Context(), "pay-42", new(charge).run, idem.On(operationOn(t, store, idem.AtLeastOnce)), idem.WithWait(time.Millisecond))
		wantError(t, err, idem.ErrInProgress)
		if store.watched.Load() != 0 {
			t.Error("a wait of 1 ms subscribed")
		}
	})
}

func TestWaiterPollsWhereTheStoreCannotTell(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &telling{spy: newSpy(t), broken: true}
		busy(t, store, idem.AtLeastOnce, time.Second, nil)
		start := time.Now()
		got, err := idem.Execute(t.Context(), "pay-42", new(charge).run, idem.On(operationOn(t, store, idem.AtLeastOnce)), idem.WithWait(time.Hour))
		if err != nil || got.Amount != 7 || time.Since(start) > 1500*time.Millisecond {
			t.Fatalf("%v, %v, after %v", got, err, time.Since(start))
		}
	})
}
