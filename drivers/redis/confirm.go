package idemredis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/idem-go/idem/driver"
)

const (
	// answering is how long a server may take for its answer beyond what it was told to wait.
	answering = 5 * time.Second
	// givingBack bounds how long a claim that was not confirmed is given back.
	givingBack = 5 * time.Second
)

// claimConfirmed claims, and has what was granted confirmed. WAIT answers for
// the writes of its own connection alone, so the claim is sent again on a
// dedicated one, with its own token: the script then writes a byte that is
// there already, behind the claim in the one stream that replicas get (see
// claim.lua). So duplicates, which are not confirmed, share the client's
// connections, and a claim whose reply was lost is confirmed like any other.
func (s *Store) claimConfirmed(ctx context.Context, p *driver.ClaimParams) (driver.ClaimResult, error) {
	first, err := s.claimOn(ctx, s.client, p)
	if err != nil || first.Decision != driver.DecisionClaimed {
		return first, err
	}
	again, err := s.confirm(ctx, p)
	switch {
	case err != nil:
		return driver.ClaimResult{}, s.giveBack(ctx, p, err)
	case again.Own && again.Fence == first.Fence:
		return first, nil
	}
	return again, nil // a failover lost the first
}

// confirm claims again and waits until that is where it has to be. The client
// follows no redirection on a dedicated connection: it would send the claim to
// one node and WAIT to another.
func (s *Store) confirm(ctx context.Context, p *driver.ClaimParams) (driver.ClaimResult, error) {
	ctx, cancel := s.confirming(ctx)
	defer cancel()
	c, release := s.client.Dedicate()
	defer release()
	args := claimArgs(p, true)
	results := c.DoMulti(ctx, s.confirmed(c, claimScript.command(c, s.physical(p.Key), args))...)
	if noScript(results[0]) {
		results = c.DoMulti(ctx, s.confirmed(c, claimScript.full(c, s.physical(p.Key), args))...)
	}
	a, err := parse(results[0])
	res, err := claimed(a, err, p)
	if err != nil || res.Decision != driver.DecisionClaimed {
		return res, err
	}
	return res, s.count(results[1:])
}

// confirming is the context of a confirmation. It has a deadline and cannot be
// cancelled, since the client would otherwise hand the connection to
// goroutines, and need a round trip to get it back for others.
func (s *Store) confirming(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline := time.Now().Add(s.waitTimeout + answering)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	return context.WithDeadline(context.WithoutCancel(ctx), deadline)
}

// confirmed are the commands that send a claim and wait for it.
func (s *Store) confirmed(c rueidis.DedicatedClient, claim rueidis.Completed) []rueidis.Completed {
	commands := []rueidis.Completed{claim}
	timeout := int64((s.waitTimeout + time.Millisecond - 1) / time.Millisecond)
	if s.replicas > 0 {
		commands = append(commands, c.B().Wait().Numreplicas(int64(s.replicas)).Timeout(timeout).Build())
	}
	if s.aof {
		commands = append(commands, c.B().Waitaof().Numlocal(1).Numreplicas(0).Timeout(timeout).Build())
	}
	return commands
}

// count tells whether enough have confirmed.
func (s *Store) count(results []rueidis.RedisResult) error {
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
		return untold("idemredis: claim: not confirmed (%v), and not given back: %v", cause, err)
	}
	return fmt.Errorf("idemredis: claim: given back: %w: %w", driver.ErrBusy, untold("%v", cause))
}

// untoldError has the text of others, but nothing of them that the contract has
// a meaning for: what they say of one step does not hold for the claim.
type untoldError struct {
	text    string
	context error // but for this
}

func untold(format string, causes ...any) error {
	e := &untoldError{text: fmt.Sprintf(format, causes...)}
	for _, c := range causes {
		for _, end := range [...]error{context.Canceled, context.DeadlineExceeded} {
			if err, ok := c.(error); ok && errors.Is(err, end) {
				e.context = end
			}
		}
	}
	return e
}

func (e *untoldError) Error() string { return e.text }

func (e *untoldError) Unwrap() error { return e.context }
