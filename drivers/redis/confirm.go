package idemredis

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/idem-go/idem/driver"
)

// givingBack bounds how long a claim that was not confirmed is given back.
const givingBack = 5 * time.Second

// claimConfirmed claims, and waits for the confirmations on the same
// connection: WAIT answers for the writes of its own connection alone. A claim
// that is sent again after its reply was lost writes something for that reason
// (see claim.lua).
func (s *Store) claimConfirmed(ctx context.Context, p *driver.ClaimParams) (driver.ClaimResult, error) {
	c, done := s.client.Dedicate()
	defer done()
	res, err := s.claimOn(ctx, c, p)
	if err != nil || res.Decision != driver.DecisionClaimed {
		return res, err
	}
	if err := s.confirm(ctx, c); err != nil {
		return driver.ClaimResult{}, s.giveBack(ctx, p, err)
	}
	return res, nil
}

// confirm waits until what c has written is where it has to be.
func (s *Store) confirm(ctx context.Context, c rueidis.DedicatedClient) error {
	var commands []rueidis.Completed
	timeout := int64((s.waitTimeout + time.Millisecond - 1) / time.Millisecond)
	if s.replicas > 0 {
		commands = append(commands, c.B().Wait().Numreplicas(int64(s.replicas)).Timeout(timeout).Build())
	}
	if s.aof {
		commands = append(commands, c.B().Waitaof().Numlocal(1).Numreplicas(0).Timeout(timeout).Build())
	}
	results := c.DoMulti(ctx, commands...)
	if s.replicas > 0 {
		n, err := results[0].ToInt64()
		if err != nil {
			return fmt.Errorf("waiting for replicas: %w", err)
		}
		if n < int64(s.replicas) {
			return fmt.Errorf("%d of %d replicas confirmed it within %v", n, s.replicas, s.waitTimeout)
		}
	}
	if s.aof {
		n, err := results[len(results)-1].AsIntSlice()
		if err != nil {
			return fmt.Errorf("waiting for the append-only file: %w", err)
		}
		if len(n) == 0 || n[0] < 1 {
			return fmt.Errorf("the append-only file did not confirm it within %v", s.waitTimeout)
		}
	}
	return nil
}

// giveBack makes the key what it was before a claim that was not confirmed, and
// returns the claim's error. If that fails, the claim may
// still be there: the error is then not one that says that nothing took effect.
func (s *Store) giveBack(ctx context.Context, p *driver.ClaimParams, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), givingBack)
	defer cancel()
	var err error
	if p.Over == 0 {
		_, err = s.Release(ctx, driver.ReleaseParams{Key: p.Key, Token: p.Token})
	} else { // it was uncertain
		_, err = s.Complete(ctx, driver.CompleteParams{
			Key: p.Key, Token: p.Token, To: driver.StateUncertain,
			Retention: p.Retention, Tombstone: p.Tombstone, Format: p.Format,
		})
	}
	if err != nil {
		return fmt.Errorf("idemredis: claim: not confirmed (%w), and not given back: %w", cause, err)
	}
	return fmt.Errorf("idemredis: claim: given back: %w: %w", driver.ErrBusy, cause)
}
