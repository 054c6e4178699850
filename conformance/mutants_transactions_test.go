package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem/conformance/internal/tiny"
	"github.com/idem-go/idem/driver"
)

var transactionFaults = []fault{
	{name: "runs fn without the claim", transact: func(_ *mutant, ctx context.Context, p driver.TransactParams, fn driver.TransactFunc, next transactFunc) (driver.TransactResult, error) {
		res, err := next(ctx, p, fn)
		if err == nil && res.Claim.Decision != driver.DecisionClaimed {
			_, err = fn(ctx, res.Claim)
		}
		return res, err
	}},
	{name: "does not recognise its own commit", transact: func(_ *mutant, ctx context.Context, p driver.TransactParams, fn driver.TransactFunc, next transactFunc) (driver.TransactResult, error) {
		res, err := next(ctx, p, fn)
		res.Claim.Own = false
		return res, err
	}},
	{name: "waits for the lock of a key", transact: func(_ *mutant, ctx context.Context, p driver.TransactParams, fn driver.TransactFunc, next transactFunc) (driver.TransactResult, error) {
		for {
			res, err := next(ctx, p, fn)
			if err != nil || res.Claim.Decision != driver.DecisionInFlight {
				return res, err
			}
			time.Sleep(time.Millisecond)
		}
	}},
	{name: "runs one transaction at a time", transact: func(m *mutant, ctx context.Context, p driver.TransactParams, fn driver.TransactFunc, next transactFunc) (driver.TransactResult, error) {
		if m.Effect(ctx, "nested") == nil {
			return next(ctx, p, fn)
		}
		for !m.enter() {
			if err := ctx.Err(); err != nil {
				return driver.TransactResult{}, err
			}
			time.Sleep(time.Millisecond)
		}
		defer m.leave()
		return next(ctx, p, fn)
	}},
	{name: "shows nothing of a transaction in flight", transact: func(_ *mutant, ctx context.Context, p driver.TransactParams, fn driver.TransactFunc, next transactFunc) (driver.TransactResult, error) {
		res, err := next(ctx, p, fn)
		if res.Claim.Decision == driver.DecisionInFlight {
			res.Claim.Fingerprint, res.Claim.LeaseLeft = nil, 0
		}
		return res, err
	}},
	{name: "transacts over a live claim", transact: func(m *mutant, ctx context.Context, p driver.TransactParams, fn driver.TransactFunc, next transactFunc) (driver.TransactResult, error) {
		m.tamper(p.Claim.Key, func(r *tiny.Record) { r.LeaseEnd, r.OnLapse = time.Time{}, driver.TakeOver })
		return next(ctx, p, fn)
	}},
	{name: "retains what transactions stored for ever", transact: func(_ *mutant, ctx context.Context, p driver.TransactParams, fn driver.TransactFunc, next transactFunc) (driver.TransactResult, error) {
		return next(ctx, p, func(ctx context.Context, c driver.ClaimResult) (driver.CompleteParams, error) {
			done, err := fn(ctx, c)
			if done.Retention > 0 {
				done.Retention = driver.RetainForever
			}
			return done, err
		})
	}},
	{name: "transacts with a lease of zero", transact: func(_ *mutant, ctx context.Context, p driver.TransactParams, fn driver.TransactFunc, next transactFunc) (driver.TransactResult, error) {
		p.Claim.Lease = max(p.Claim.Lease, 1)
		return next(ctx, p, fn)
	}},
	{name: "commits the effect before the outcome", effect: func(m *mutant, _ context.Context, id string) error {
		m.commit(id)
		return nil
	}},
	{name: "commits although fn failed", transact: func(_ *mutant, ctx context.Context, p driver.TransactParams, fn driver.TransactFunc, next transactFunc) (driver.TransactResult, error) {
		var failure error
		res, err := next(ctx, p, func(ctx context.Context, c driver.ClaimResult) (driver.CompleteParams, error) {
			done, err := fn(ctx, c)
			if err != nil {
				failure, done = err, completion(p.Claim)
			}
			return done, nil
		})
		return res, errors.Join(failure, err)
	}},
	{name: "wraps fn's error", transact: func(_ *mutant, ctx context.Context, p driver.TransactParams, fn driver.TransactFunc, next transactFunc) (driver.TransactResult, error) {
		res, err := next(ctx, p, fn)
		if err != nil {
			err = fmt.Errorf("transaction: %w", err)
		}
		return res, err
	}},
	{name: "commits when fn does not return", transact: func(_ *mutant, ctx context.Context, p driver.TransactParams, fn driver.TransactFunc, next transactFunc) (driver.TransactResult, error) {
		return next(ctx, p, func(ctx context.Context, c driver.ClaimResult) (done driver.CompleteParams, err error) {
			// The goroutine that fn ends is not this one, so the transaction commits.
			ended := make(chan any)
			returned := false
			go func() {
				defer func() {
					v := recover()
					if !returned && v == nil {
						v = "Goexit"
					}
					ended <- v
				}()
				done, err = fn(ctx, c)
				returned = true
			}()
			if <-ended != nil {
				return completion(p.Claim), nil
			}
			return done, err
		})
	}},
	{name: "commits the effect alone when the rest fails", transact: func(m *mutant, ctx context.Context, p driver.TransactParams, fn driver.TransactFunc, next transactFunc) (driver.TransactResult, error) {
		succeeded := false
		res, err := next(ctx, p, func(ctx context.Context, c driver.ClaimResult) (driver.CompleteParams, error) {
			done, err := fn(ctx, c)
			succeeded = err == nil
			return done, err
		})
		if err != nil && succeeded {
			m.commit(p.Claim.Key.ID)
		}
		return res, err
	}},
	{name: "hides a cancelled context from transactions", transact: func(_ *mutant, ctx context.Context, p driver.TransactParams, fn driver.TransactFunc, next transactFunc) (driver.TransactResult, error) {
		return next(context.WithoutCancel(ctx), p, fn)
	}},
	{name: "deletes the record at a rollback", transact: func(m *mutant, ctx context.Context, p driver.TransactParams, fn driver.TransactFunc, next transactFunc) (driver.TransactResult, error) {
		res, err := next(ctx, p, fn)
		if err != nil {
			m.remove(p.Claim.Key)
		}
		return res, err
	}},
	{name: "does not roll back to a savepoint", transact: func(m *mutant, ctx context.Context, p driver.TransactParams, fn driver.TransactFunc, next transactFunc) (driver.TransactResult, error) {
		if m.Effect(ctx, "nested") != nil {
			return next(ctx, p, fn)
		}
		var failure error
		res, err := next(ctx, p, func(ctx context.Context, c driver.ClaimResult) (driver.CompleteParams, error) {
			done, err := fn(ctx, c)
			if err != nil {
				failure, done = err, completion(p.Claim)
			}
			return done, nil
		})
		if failure != nil {
			err = failure
		}
		return res, err
	}},
	{name: "does not join", transact: func(m *mutant, ctx context.Context, p driver.TransactParams, fn driver.TransactFunc, next transactFunc) (driver.TransactResult, error) {
		if m.Effect(ctx, "nested") == nil {
			ctx = context.WithValue(context.Background(), driverKey{}, driver.Driver(m))
		}
		return next(ctx, p, fn)
	}},
	{name: "claims nested keys that are completed", transact: func(m *mutant, ctx context.Context, p driver.TransactParams, fn driver.TransactFunc, next transactFunc) (driver.TransactResult, error) {
		if m.Effect(ctx, "nested") == nil {
			m.remove(p.Claim.Key)
		}
		return next(ctx, p, fn)
	}},
	{name: "declares a single writer and refuses nothing", caps: func(c *driver.Capabilities) { c.SingleWriter = true }},
}

func (m *mutant) enter() bool {
	m.step.Lock()
	defer m.step.Unlock()
	m.seen["open"]++
	if m.seen["open"] > 1 {
		m.seen["open"]--
		return false
	}
	return true
}

func (m *mutant) leave() {
	m.step.Lock()
	defer m.step.Unlock()
	m.seen["open"]--
}

func (m *mutant) commit(id string) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	m.Effects[id]++
}
