package tiny

import (
	"context"
	"errors"
	"time"

	"github.com/idem-go/idem/driver"
)

// tx is a transaction: what it has to undo, and the effects to commit.
type tx struct {
	cuts    int
	undo    []before
	effects []string
}

// before is a record as it was before the transaction.
type before struct {
	key    driver.Key
	record Record
}

type txKey struct{ s *Store }

// Transact implements [driver.Transactor].
func (s *Store) Transact(ctx context.Context, p driver.TransactParams, fn driver.TransactFunc) (driver.TransactResult, error) {
	if err := p.Claim.Validate(); err != nil {
		return driver.TransactResult{}, err
	}
	if err := ctx.Err(); err != nil {
		return driver.TransactResult{}, err
	}
	t, joined := ctx.Value(txKey{s}).(*tx)
	if !joined {
		t = &tx{}
		ctx = context.WithValue(ctx, txKey{s}, t)
	}
	savepoint, effects := len(t.undo), len(t.effects)
	claim, err := s.begin(t, p.Claim)
	claim.Joined = joined
	res := driver.TransactResult{Claim: claim}
	if err != nil || claim.Decision != driver.DecisionClaimed {
		return res, err
	}
	succeeded := false
	defer func() {
		if !succeeded {
			s.rollback(t, savepoint)
			t.effects = t.effects[:effects]
		}
	}()
	done, err := fn(ctx, claim)
	if err != nil {
		return res, err
	}
	if res.Complete, err = s.finish(ctx, t, done, joined); err != nil {
		return res, err
	}
	succeeded = true
	return res, nil
}

// begin claims the key within the transaction.
func (s *Store) begin(t *tx, p driver.ClaimParams) (driver.ClaimResult, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if len(t.undo) == 0 {
		t.cuts = s.Cuts
	}
	old := s.Records[p.Key]
	res, err := s.claim(time.Now(), p)
	if err == nil && res.Decision == driver.DecisionClaimed {
		t.undo = append(t.undo, before{p.Key, old})
		r := s.Records[p.Key]
		r.InTx = true
		s.Records[p.Key] = r
	}
	return res, err
}

// finish completes, and commits unless an outer transaction will.
func (s *Store) finish(ctx context.Context, t *tx, p driver.CompleteParams, joined bool) (driver.CompleteResult, error) {
	if err := p.Validate(); err != nil {
		return driver.CompleteResult{}, err
	}
	if err := ctx.Err(); err != nil {
		return driver.CompleteResult{}, err
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.Cuts != t.cuts {
		return driver.CompleteResult{}, driver.ErrConflict
	}
	res, err := s.complete(time.Now(), p)
	if err != nil || joined {
		return res, err
	}
	for _, b := range t.undo {
		r := s.Records[b.key]
		r.InTx = false
		s.Records[b.key] = r
	}
	for _, id := range t.effects {
		s.Effects[id]++
	}
	return res, nil
}

// rollback undoes what was done since the savepoint.
func (s *Store) rollback(t *tx, savepoint int) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for i := len(t.undo) - 1; i >= savepoint; i-- {
		s.Records[t.undo[i].key] = t.undo[i].record
	}
	t.undo = t.undo[:savepoint]
}

// Effect writes an effect in the transaction that ctx carries.
func (s *Store) Effect(ctx context.Context, id string) error {
	t, ok := ctx.Value(txKey{s}).(*tx)
	if !ok {
		return errors.New("tiny: no transaction")
	}
	t.effects = append(t.effects, id)
	return nil
}

// Committed counts the committed effects.
func (s *Store) Committed(id string) int {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.Effects[id]
}

// Cut makes every open transaction fail, as a broken connection does.
func (s *Store) Cut() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Cuts++
}
