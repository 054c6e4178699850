package idemsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/idem-go/idem/driver"
)

// Transact implements [driver.Transactor]: BEGIN, a write that claims, fn, a
// write that completes, COMMIT. In a context that carries a transaction of this
// store's pool, see [Join], savepoints take the place of BEGIN and COMMIT.
//
// The caller's cancellation reaches fn, and what waits before fn; once fn has
// succeeded, completing and committing go on without it.
func (s *Store) Transact(
	ctx context.Context, p driver.TransactParams, fn driver.TransactFunc,
) (driver.TransactResult, error) {
	if err := p.Claim.Validate(); err != nil {
		return driver.TransactResult{}, err
	}
	t, err := s.transaction(ctx)
	if err != nil {
		return driver.TransactResult{}, err
	}
	if t != nil {
		return s.join(ctx, t, &p.Claim, fn)
	}
	f, other, err := s.flights.enter(ctx, p.Claim.Key)
	if err != nil {
		return driver.TransactResult{}, s.failed("transact", err)
	}
	if other != nil {
		return driver.TransactResult{Claim: other.answer(s.dialect.unit)}, nil
	}
	defer s.flights.leave(p.Claim.Key, f)

	a := s.lockArgs(&p.Claim)
	var seen *record
	if s.readFirst(p.Claim.Key) {
		var res driver.ClaimResult
		seen, res, err = session{Store: s}.look(ctx, &p.Claim, a)
		if err != nil {
			return driver.TransactResult{}, s.failed("transact", err)
		}
		if res.Decision != 0 && res.Decision != driver.DecisionClaimed {
			s.saw(p.Claim.Key, res.Decision)
			return driver.TransactResult{Claim: res}, nil
		}
	}
	res, err := s.transact(ctx, &p.Claim, a, seen, f, fn)
	if err == nil && res.Claim.Decision == driver.DecisionClaimed {
		s.sweep(ctx)
	}
	return res, err
}

func (s *Store) readFirst(k driver.Key) bool {
	if s.config.mode == Auto {
		return s.guess.Likely(k, s.dialect.duplicates)
	}
	return s.config.mode == ReadFirst
}

// transact runs the transaction. It keeps its turn among the writers to the end.
func (s *Store) transact(
	ctx context.Context, p *driver.ClaimParams, a *args, seen *record, f *flight, fn driver.TransactFunc,
) (driver.TransactResult, error) {
	if err := s.enter(ctx); err != nil {
		return driver.TransactResult{}, s.failed("transact", err)
	}
	defer s.leave()
	w := newPatience()
	var o *opened
	var claim driver.ClaimResult
	err := s.again(ctx, w, func() (err error) {
		o, claim, err = s.begin(ctx, p, a, seen)
		return err
	})
	if err != nil {
		return driver.TransactResult{}, s.failed("transact", err)
	}
	s.saw(p.Key, claim.Decision)
	if claim.Decision != driver.DecisionClaimed {
		return driver.TransactResult{Claim: claim}, nil
	}
	f.grant(claim, p.Lease)
	return s.run(ctx, o, claim, p, fn)
}

// begin begins a transaction with a claim. If the claim was not granted, the
// transaction has ended when begin returns.
func (s *Store) begin(
	ctx context.Context, p *driver.ClaimParams, a *args, seen *record,
) (*opened, driver.ClaimResult, error) {
	if err := s.prime(ctx); err != nil {
		return nil, driver.ClaimResult{}, err
	}
	o, err := s.open(ctx, a)
	if err != nil {
		return nil, driver.ClaimResult{}, err
	}
	claim, err := o.session().claim(ctx, p, a, seen)
	o.claimed(claim, err)
	if err != nil || claim.Decision != driver.DecisionClaimed {
		o.end()
		return nil, claim, err
	}
	return o, claim, nil
}

// run runs fn, completes and commits. However fn ends, the transaction has ended afterwards.
func (s *Store) run(
	ctx context.Context, o *opened, claim driver.ClaimResult, p *driver.ClaimParams, fn driver.TransactFunc,
) (driver.TransactResult, error) {
	defer o.end()
	res := driver.TransactResult{Claim: claim}
	t := &transaction{tx: o.tx, pool: s.db.DB, turn: make(chan struct{}, 1)}
	c, err := fn(t.into(ctx), claim)
	if err != nil {
		return res, s.conflict(err)
	}
	defer o.finishing(p.Lease)()
	if res.Complete, err = o.session().finish(o.ctx, p, &c); err != nil {
		if errors.Is(err, sql.ErrTxDone) && o.ctx.Err() == nil {
			o.end() // or a pool of one connection would wait for itself
			err = s.ended(ctx, &c)
		}
		return res, s.failed("complete", err)
	}
	o.finished()
	if err := o.commit(); err != nil {
		return res, s.failed("commit", s.commitError(err))
	}
	return res, nil
}

// finish completes what fn ran.
func (s session) finish(ctx context.Context, p *driver.ClaimParams, c *driver.CompleteParams) (driver.CompleteResult, error) {
	if err := c.Validate(); err != nil {
		return driver.CompleteResult{}, err
	}
	if c.Key != p.Key || c.Token != p.Token {
		return driver.CompleteResult{}, fmt.Errorf("%w: completing another claim than the transaction's", driver.ErrInvalid)
	}
	res, err := s.complete(ctx, c)
	if errors.Is(err, driver.ErrLost) {
		return res, errVanished
	}
	if err != nil && (s.is(err, kindLocked) || s.lost(err)) {
		return res, fmt.Errorf("%w: %w", driver.ErrConflict, err) // it was never told to commit
	}
	return res, err
}

// errVanished is no [driver.ErrConflict]: what fn did after its transaction had
// been rolled back may have taken effect, so nobody may run it again unasked.
var errVanished = errors.New("the database rolled the transaction back while fn ran, " +
	"because a statement was interrupted or failed, and fn did not return that error")

var errEnded = errors.New("fn ended the transaction itself, which it must not")

// ended settles what can be settled after fn has ended the transaction: if it
// committed, effect and claim are there, and the outcome must follow, or the
// effect would happen again when the lease is over.
func (s *Store) ended(ctx context.Context, c *driver.CompleteParams) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishWait)
	defer cancel()
	_, err := session{Store: s}.complete(ctx, c)
	if err != nil && !errors.Is(err, driver.ErrLost) {
		return errors.Join(errEnded, err)
	}
	return errEnded
}

// commitError says what a failed COMMIT means. A refusal for want of a lock, or
// because of a deferred constraint, leaves nothing behind, on SQLite one for
// want of space neither; of anything else it is unknown whether what was
// written will be found there after all.
func (s *Store) commitError(err error) error {
	switch k := s.kindOf(err); {
	case k == kindLocked:
		return fmt.Errorf("%w: %w", driver.ErrConflict, err)
	case k == kindConstraint, k == kindFull && s.dialect.singleWriter:
		return err
	}
	if errors.Is(err, sql.ErrTxDone) {
		return errEnded
	}
	return fmt.Errorf("%w: %w", driver.ErrUnknown, err)
}
