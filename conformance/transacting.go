package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/idem-go/idem/driver"
)

// atOnce bounds an answer that must not wait for a lock: above a slow server's
// time, below every default lock timeout.
const atOnce = 2 * time.Second

// inbox are the parameters of a new caller of an exactly-once operation.
func inbox(id string) driver.ClaimParams {
	p := lease(long)
	p.Key = key(id)
	p.Guarantee = driver.ExactlyOnce
	return p
}

func (s *suite) transactOn(d driver.Driver, ctx context.Context, p driver.ClaimParams, fn driver.TransactFunc) (driver.TransactResult, error) {
	tx, ok := driver.As[driver.Transactor](d)
	if !ok {
		s.Fatal("the driver has no Transactor")
	}
	return tx.Transact(ctx, driver.TransactParams{Claim: p}, fn)
}

// transact wants no error.
func (s *suite) transact(p driver.ClaimParams, fn driver.TransactFunc) driver.TransactResult {
	res, err := s.transactOn(s.d, s.ctx, p, fn)
	if err != nil {
		s.Fatalf("Transact: %v", err)
	}
	return res
}

// effect returns a fn that writes the effect and completes.
func (s *suite) effect(p driver.ClaimParams, id string) driver.TransactFunc {
	return func(ctx context.Context, _ driver.ClaimResult) (driver.CompleteParams, error) {
		return completion(p), s.h.Effect(ctx, id)
	}
}

// notCalled is a fn that must not be called.
func (s *suite) notCalled(context.Context, driver.ClaimResult) (driver.CompleteParams, error) {
	s.Errorf("fn was called")
	return driver.CompleteParams{}, errors.New("fn was called")
}

// effects wants n committed effects.
func (s *suite) effects(id string, n int) {
	got, err := s.h.Effects(s.ctx, id)
	if err != nil {
		s.Fatalf("counting effects: %v", err)
	}
	if got != n {
		s.Errorf("%d effects of %q were committed, want %d", got, id, n)
	}
}

// commits wants a new transaction of the key to run and commit.
func (s *suite) commits(p driver.ClaimParams, id string) driver.ClaimResult {
	p = again(p)
	res := s.transact(p, s.effect(p, id))
	if res.Claim.Decision != driver.DecisionClaimed {
		s.Errorf("the next transaction is %v, want Claimed", res.Claim.Decision)
	}
	s.effects(id, 1)
	return res.Claim
}

// during runs f while a transaction of the key, begun by another goroutine, is
// inside its fn, and then lets that commit.
func (s *suite) during(p driver.ClaimParams, id string, f func()) {
	entered, leave, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer s.catch()
		_, err := s.transactOn(s.d, s.ctx, p, func(ctx context.Context, _ driver.ClaimResult) (driver.CompleteParams, error) {
			err := s.h.Effect(ctx, id)
			close(entered)
			select {
			case <-leave:
			case <-time.After(4 * atOnce): // f waits for this transaction
			}
			return completion(p), err
		})
		if err != nil {
			s.Errorf("the transaction that holds the key: %v", err)
		}
	}()
	defer func() { <-ended }()
	defer close(leave)
	select {
	case <-entered:
		f()
	case <-ended:
		s.Fatal("the first transaction did not call fn")
	}
}

// passing reports whether a transaction may succeed when it is sent again.
func passing(err error) bool {
	return errors.Is(err, driver.ErrBusy) || errors.Is(err, driver.ErrConflict) || errors.Is(err, driver.ErrUnknown)
}

// settle sends the transaction until it has an answer that is final.
func (s *suite) settle(d driver.Driver, p driver.ClaimParams, fn driver.TransactFunc) driver.TransactResult {
	for began := time.Now(); ; {
		res, err := s.transactOn(d, s.ctx, p, fn)
		switch {
		case time.Since(began) > long:
			s.Fatalf("no answer within %v: %v, %v", long, res.Claim.Decision, err)
		case err != nil && !passing(err):
			s.Fatalf("Transact: %v", err)
		case err == nil && res.Claim.Decision != driver.DecisionInFlight:
			return res
		}
		time.Sleep(2 * time.Millisecond) // as a waiter polls
	}
}
