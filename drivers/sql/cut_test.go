package idemsql_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/conformance/faults"
	"github.com/idem-go/idem/driver"
)

// TestCutConnections breaks the connection before, in the middle of and after
// each message of a call, in both directions, COMMIT included. What the caller
// is told agrees with the database, and the effects are those that the guarantee promises.
func TestCutConnections(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s server) {
		t.Helper()
		ways := []server{s}
		if !s.family() {
			ways = drivers("postgres")
		}
		for _, way := range ways {
			for _, g := range []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce, idem.ExactlyOnce} {
				t.Run(way.driver+"/"+g.String(), func(t *testing.T) {
					t.Parallel()
					c := &cutting{server: way, guarantee: g, shared: way.open(t)}
					for _, d := range []faults.Direction{faults.ToServer, faults.ToClient} {
						for _, f := range []faults.Fault{faults.CutBefore, faults.CutWithin, faults.CutAfter} {
							c.everywhere(t, d, f)
						}
					}
					if c.cuts < 10 {
						t.Errorf("only %d connections were cut", c.cuts)
					}
				})
			}
		}
	})
}

// cutting is a table and what is run on it.
type cutting struct {
	server

	guarantee idem.Guarantee
	shared    *bundle
	cuts      int
}

// everywhere cuts at the first message, at the second and so on, until there are no more.
func (c *cutting) everywhere(t *testing.T, d faults.Direction, f faults.Fault) {
	t.Helper()
	b, p := c.through(t, c.shared)
	op := c.operation(t, b)
	direct := c.operation(t, c.shared)
	for n := 1; ; n++ {
		warm := fmt.Sprintf("warm-%d-%d-%d", d, f, n)
		p.Handle(nil)
		if _, err := idem.Execute(t.Context(), warm, c.effect(b, warm), idem.On(op)); err != nil {
			t.Fatalf("without a cut: %v", err)
		}
		key := fmt.Sprintf("key-%d-%d-%d", d, f, n)
		hit := make(chan struct{})
		p.Handle(func(m faults.Message) faults.Fault {
			if m.Direction != d || m.N != n {
				return faults.Pass
			}
			close(hit)
			return f
		})
		value, err := idem.Execute(t.Context(), key, c.effect(b, key), idem.On(op))
		select {
		case <-hit:
			c.cuts++
			c.check(t, direct, key, value, err)
		default:
			return
		}
	}
}

func (c *cutting) operation(t *testing.T, b *bundle) *idem.Operation {
	t.Helper()
	var opts []idem.OperationOption
	if c.guarantee != idem.ExactlyOnce {
		opts = append(opts, idem.WithLeaseTTL(5*time.Second))
	}
	op, err := idem.NewOperation("cuts", b.Store, c.guarantee, opts...)
	must(t, err)
	return op
}

// effect writes in the call's transaction, or elsewhere at the same time.
func (c *cutting) effect(b *bundle, key string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		if c.guarantee == idem.ExactlyOnce {
			return "done " + key, b.write(key)(ctx)
		}
		_, err := c.shared.db.ExecContext(ctx, c.shared.db.Rebind("INSERT INTO "+b.table+"_effects (id) VALUES (?)"), key)
		return "done " + key, err
	}
}

// check asks for the key again, and counts.
func (c *cutting) check(t *testing.T, direct *idem.Operation, key, value string, err error) {
	t.Helper()
	told, before := err == nil, c.shared.count(key)
	if told && (value != "done "+key || before != 1) {
		t.Errorf("%s: the caller has %q, and there are %d effects", key, value, before)
	}
	if e, ok := errors.AsType[*idem.Error](err); ok && !told && !errors.Is(e, idem.ErrOutcomeUnknown) && before != 0 &&
		c.guarantee == idem.ExactlyOnce {
		t.Errorf("%s: the caller is told %v, and there are %d effects", key, err, before)
	}
	again, err := idem.Execute(t.Context(), key, c.effect(c.shared, key), idem.On(direct), idem.WithWait(10*time.Second))
	effects := c.shared.count(key)
	switch {
	case c.guarantee == idem.AtMostOnce && !told && errors.Is(err, idem.ErrOutcomeUnknown):
		if effects > 1 {
			t.Errorf("%s: %d effects", key, effects)
		}
	case err != nil || again != "done "+key:
		t.Errorf("%s: the next caller has %q, %v", key, again, err)
	case c.guarantee == idem.AtLeastOnce && effects < 1, c.guarantee != idem.AtLeastOnce && effects != 1:
		t.Errorf("%s: %d effects", key, effects)
	case told && c.guarantee == idem.AtLeastOnce && effects > 2:
		t.Errorf("%s: %d effects", key, effects)
	}
}

// A server that stops answering holds nobody longer than the caller wants,
// with the drivers that give up a connection when the context ends. lib/pq
// waits for the answer to its request to cancel.
func TestAStalledServerIsNotWaitedForBeyondTheContext(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s server) {
		t.Helper()
		if !s.family() {
			s = servers["postgres/pgx"]
		}
		shared := s.open(t)
		b, p := s.through(t, shared)
		b.mustClaim(claimOf("warm"), driver.DecisionClaimed)
		_, err := b.transact(t.Context(), claimOf("warm inbox"), b.write("warm"))
		must(t, err)
		for what, call := range map[string]func(context.Context) error{
			"a claim": func(ctx context.Context) error { _, err := b.Claim(ctx, claimOf("lease")); return err },
			"an inbox": func(ctx context.Context) error {
				_, err := b.transact(ctx, claimOf("inbox"), b.write("inbox"))
				return err
			},
		} {
			p.Handle(func(faults.Message) faults.Fault { return faults.Stall })
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			began := time.Now()
			err := call(ctx)
			cancel()
			if took := time.Since(began); err == nil || took > 3*time.Second {
				t.Errorf("%s ends after %v with %v", what, took, err)
			}
			p.Handle(nil)
			p.Cut()
		}
		_, err = b.transact(t.Context(), claimOf("inbox"), b.write("inbox"))
		if err != nil || shared.count("inbox") != 1 {
			t.Errorf("afterwards: %v, %d effects", err, shared.count("inbox"))
		}
	})
}
