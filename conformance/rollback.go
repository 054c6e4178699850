package conformance

import (
	"context"
	"errors"
	"runtime"

	"github.com/idem-go/idem/driver"
)

var rollbackCases = []testCase{
	{
		"rollback/failure-rolls-everything-back",
		"If fn fails, effect and claim are rolled back and fn's error is returned unchanged.",
		needs{inboxes}, failureRollsBack,
	},
	{
		"rollback/panic-rolls-everything-back",
		"If fn panics, effect and claim are rolled back and the panic goes on.",
		needs{inboxes}, panicRollsBack,
	},
	{
		"rollback/goexit-rolls-everything-back",
		"If fn calls runtime.Goexit, effect and claim are rolled back and the goroutine ends.",
		needs{inboxes}, goexitRollsBack,
	},
	{
		"rollback/failed-completion-rolls-everything-back",
		"If the completion that fn returns cannot be stored, effect and claim are rolled back.",
		needs{inboxes}, failedCompletionRollsBack,
	},
	{
		"rollback/cancellation-rolls-everything-back",
		"If the context is cancelled inside fn and fn fails with it, effect and claim are rolled back and the store works on.",
		needs{inboxes}, cancellationRollsBack,
	},
	{
		"rollback/late-cancellation-commits-all-or-nothing",
		"If the context is cancelled and fn succeeds all the same, effect and outcome commit together or not at all.",
		needs{inboxes}, lateCancellation,
	},
	{
		"rollback/cut-connection-commits-all-or-nothing",
		"If the connection is cut inside fn, sending the transaction again with its token ends in exactly one effect.",
		needs{inboxes, interrupts}, cutConnection,
	},
	{
		"rollback/earlier-record-stays",
		"A transaction that fails leaves the record that it found as it was.",
		needs{inboxes, leasesOrGuards}, earlierRecordStays,
	},
	{
		"rollback/cancelled-before-it-begins",
		"A transaction whose context is cancelled before it begins does not call fn, and its error is the context's.",
		needs{inboxes}, cancelledBeforeItBegins,
	},
}

// rolledBack wants no trace of the transaction, and the next one to run.
func (s *suite) rolledBack(p driver.ClaimParams, id string) {
	s.effects(id, 0)
	if c := s.commits(p, id); c.Attempt != 1 || c.TookOver {
		s.Errorf("the next claim is attempt %d, TookOver %v; want attempt 1 as if nothing had been", c.Attempt, c.TookOver)
	}
}

// failing returns a fn that writes the effect and then ends with end.
func (s *suite) failing(id string, end func() error) driver.TransactFunc {
	return func(ctx context.Context, _ driver.ClaimResult) (driver.CompleteParams, error) {
		if err := s.h.Effect(ctx, id); err != nil {
			s.Errorf("writing the effect: %v", err)
		}
		return driver.CompleteParams{}, end()
	}
}

func failureRollsBack(s *suite) {
	id := newID()
	p := inbox(id)
	failure := errors.New("fn failed")
	_, err := s.transactOn(s.d, s.ctx, p, s.failing(id, func() error { return failure }))
	if err != failure { //nolint:errorlint // unchanged means this very value
		s.Errorf("Transact returned %v, want fn's error unchanged", err)
	}
	s.rolledBack(p, id)
}

func panicRollsBack(s *suite) {
	id := newID()
	p := inbox(id)
	value := new(int)
	func() {
		defer func() {
			if v := recover(); v != value {
				s.Errorf("the panic went on with %v, want fn's value", v)
			}
		}()
		_, err := s.transactOn(s.d, s.ctx, p, s.failing(id, func() error { panic(value) }))
		s.Errorf("Transact returned %v after a panic", err)
	}()
	s.rolledBack(p, id)
}

func goexitRollsBack(s *suite) {
	id := newID()
	p := inbox(id)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, err := s.transactOn(s.d, s.ctx, p, s.failing(id, func() error {
			runtime.Goexit()
			return nil
		}))
		s.Errorf("Transact returned %v after Goexit", err)
	}()
	<-ended
	s.rolledBack(p, id)
}

func failedCompletionRollsBack(s *suite) {
	id := newID()
	p := inbox(id)
	_, err := s.transactOn(s.d, s.ctx, p, s.failing(id, func() error { return nil })) // completes with nothing
	if !errors.Is(err, driver.ErrInvalid) {
		s.Errorf("Transact returned %v, want ErrInvalid", err)
	}
	s.rolledBack(p, id)
}

func cancellationRollsBack(s *suite) {
	for range 3 {
		id := newID()
		p := inbox(id)
		ctx, cancel := context.WithCancel(s.ctx)
		_, err := s.transactOn(s.d, ctx, p, s.failing(id, func() error {
			cancel()
			return ctx.Err()
		}))
		if !errors.Is(err, context.Canceled) {
			s.Errorf("Transact returned %v, want context.Canceled", err)
		}
		s.rolledBack(p, id)
	}
}

func lateCancellation(s *suite) {
	id := newID()
	p := inbox(id)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	_, err := s.transactOn(s.d, ctx, p, func(ctx context.Context, c driver.ClaimResult) (driver.CompleteParams, error) {
		defer cancel()
		return s.effect(p, id)(ctx, c)
	})
	switch {
	case err == nil:
		s.effects(id, 1)
	case !errors.Is(err, driver.ErrUnknown):
		s.effects(id, 0)
	}
	s.settle(s.d, p, s.effect(p, id))
	s.effects(id, 1)
}

func cutConnection(s *suite) {
	id := newID()
	p := inbox(id)
	_, err := s.transactOn(s.d, s.ctx, p, func(ctx context.Context, c driver.ClaimResult) (driver.CompleteParams, error) {
		done, err := s.effect(p, id)(ctx, c)
		s.h.Interrupt(s, s.d)
		return done, err
	})
	if err == nil {
		s.effects(id, 1)
	}
	s.settle(s.d, p, s.effect(p, id))
	s.effects(id, 1)
}

func earlierRecordStays(s *suite) {
	id := newID()
	p := s.caller()
	p.Key = key(id)
	first := s.grant(p)
	s.release(p)
	in := inbox(id)
	for range 2 {
		_, err := s.transactOn(s.d, s.ctx, again(in), s.failing(id, func() error { return errors.New("fn failed") }))
		if err == nil {
			s.Errorf("Transact returned no error")
		}
	}
	if c := s.commits(in, id); c.Generation != first.Generation || c.Attempt != 2 || c.Fence <= first.Fence {
		s.Errorf("generation %d, attempt %d, fence %d; want %d, 2, above %d",
			c.Generation, c.Attempt, c.Fence, first.Generation, first.Fence)
	}
}

func cancelledBeforeItBegins(s *suite) {
	id := newID()
	p := inbox(id)
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	if _, err := s.transactOn(s.d, ctx, p, s.notCalled); !errors.Is(err, context.Canceled) {
		s.Errorf("Transact returned %v, want context.Canceled", err)
	}
	s.rolledBack(p, id)
}
