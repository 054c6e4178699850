package idem_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDeclined = errors.New("declined")

// newOperation returns an operation on a memory store of its own.
func newOperation(tb testing.TB, g idem.Guarantee, opts ...idem.OperationOption) *idem.Operation {
	tb.Helper()
	return operationOn(tb, newMemory(tb), g, opts...)
}

func operationOn(tb testing.TB, d driver.Driver, g idem.Guarantee, opts ...idem.OperationOption) *idem.Operation {
	tb.Helper()
	op, err := idem.NewOperation("payments", d, g, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	return op
}

func newMemory(tb testing.TB) *idemmemory.Store {
	tb.Helper()
	store, err := idemmemory.New()
	if err != nil {
		tb.Fatal(err)
	}
	return store
}

// spy is a memory store that looks like one on a server (leases need a
// heartbeat), counts its calls and fails where it is told to: before or after
// the step has taken effect.
type spy struct {
	*idemmemory.Store

	mu                          sync.Mutex
	claims                      []hook // of the next calls, one each
	completes, releases, renews hook   // of every call

	claimed, completed, released, renewed atomic.Int64
}

// hook answers a call; do takes the step.
type hook func(ctx context.Context, do func() error) error

func newSpy(tb testing.TB) *spy { tb.Helper(); return &spy{Store: newMemory(tb)} }

func (s *spy) Capabilities() driver.Capabilities {
	caps := s.Store.Capabilities()
	caps.Ephemeral = false
	return caps
}

func (s *spy) Claim(ctx context.Context, p driver.ClaimParams) (res driver.ClaimResult, err error) {
	s.claimed.Add(1)
	err = run(ctx, s.next(), func() error {
		res, err = s.Store.Claim(ctx, p)
		return err
	})
	return res, err
}

func (s *spy) next() (h hook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.claims) > 0 {
		h, s.claims = s.claims[0], s.claims[1:]
	}
	return h
}

func (s *spy) set(which *hook, h hook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*which = h
}

func (s *spy) get(which *hook) hook {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *which
}

func (s *spy) Complete(ctx context.Context, p driver.CompleteParams) (res driver.CompleteResult, err error) {
	s.completed.Add(1)
	err = run(ctx, s.get(&s.completes), func() error {
		res, err = s.Store.Complete(ctx, p)
		return err
	})
	return res, err
}

func (s *spy) Release(ctx context.Context, p driver.ReleaseParams) (res driver.ReleaseResult, err error) {
	s.released.Add(1)
	err = run(ctx, s.get(&s.releases), func() error {
		res, err = s.Store.Release(ctx, p)
		return err
	})
	return res, err
}

func (s *spy) Renew(ctx context.Context, p driver.RenewParams) (res driver.RenewResult, err error) {
	s.renewed.Add(1)
	err = run(ctx, s.get(&s.renews), func() error {
		res, err = s.Store.Renew(ctx, p)
		return err
	})
	return res, err
}

func run(ctx context.Context, h hook, do func() error) error {
	if h == nil {
		return do()
	}
	return h(ctx, do)
}

var errCut = errors.New("connection cut")

// fails answers without the step.
func fails(context.Context, func() error) error { return errCut }

// loses takes the step and loses its reply.
func loses(_ context.Context, do func() error) error { _ = do(); return errCut }

type receipt struct {
	Amount int
	ID     string
}

// charge is a function that counts its runs.
type charge struct {
	runs atomic.Int64
	err  error
}

func (c *charge) run(context.Context) (receipt, error) {
	n := c.runs.Add(1)
	return receipt{Amount: int(n), ID: "ch"}, c.err
}

// wantError fails the test unless err is an *idem.Error of the reason.
func wantError(tb testing.TB, err, reason error) {
	tb.Helper()
	_ = idemError(tb, err, reason)
}

// idemError is wantError for those who look into it.
func idemError(tb testing.TB, err, reason error) *idem.Error {
	tb.Helper()
	var e *idem.Error
	if !errors.As(err, &e) || !errors.Is(err, reason) {
		tb.Fatalf("got the error %v, want %v", err, reason)
	}
	return e
}
