package faults

import (
	"context"
	"errors"

	"github.com/idem-go/idem/driver"
)

// WithPoints returns a driver that is d with a point before and after each
// call of the five methods and of Transact, and around the function inside that: "before
// Claim", "after Claim", "inside Transact" and so on. A nil crasher returns d.
func WithPoints(d driver.Driver, c *Crasher) driver.Driver {
	if c == nil {
		return d
	}
	return &pointed{Driver: d, c: c}
}

// pointed leaves every other ability to the driver below it.
type pointed struct {
	driver.Driver

	c *Crasher
}

var _ driver.Transactor = (*pointed)(nil)

func (p *pointed) Unwrap() driver.Driver { return p.Driver }

func (p *pointed) around(call string) (after func()) {
	p.c.Point("before " + call)
	return func() { p.c.Point("after " + call) }
}

func (p *pointed) Claim(ctx context.Context, q driver.ClaimParams) (driver.ClaimResult, error) {
	defer p.around("Claim")()
	return p.Driver.Claim(ctx, q)
}

func (p *pointed) Complete(ctx context.Context, q driver.CompleteParams) (driver.CompleteResult, error) {
	defer p.around("Complete")()
	return p.Driver.Complete(ctx, q)
}

func (p *pointed) Release(ctx context.Context, q driver.ReleaseParams) (driver.ReleaseResult, error) {
	defer p.around("Release")()
	return p.Driver.Release(ctx, q)
}

func (p *pointed) Renew(ctx context.Context, q driver.RenewParams) (driver.RenewResult, error) {
	defer p.around("Renew")()
	return p.Driver.Renew(ctx, q)
}

func (p *pointed) Transact(ctx context.Context, q driver.TransactParams, fn driver.TransactFunc) (driver.TransactResult, error) {
	t, ok := driver.As[driver.Transactor](p.Driver)
	if !ok {
		return driver.TransactResult{}, errors.ErrUnsupported
	}
	defer p.around("Transact")()
	return t.Transact(ctx, q, func(ctx context.Context, claim driver.ClaimResult) (driver.CompleteParams, error) {
		defer p.around("the function")()
		return fn(ctx, claim)
	})
}
