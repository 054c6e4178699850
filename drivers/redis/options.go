package idemredis

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// The defaults of the options.
const (
	DefaultPrefix = "idem:"
	// DefaultMaxOutcome is what fits into a string of Redis
	// (https://redis.io/docs/latest/develop/data-types/strings/#limits) with the rest of the record.
	DefaultMaxOutcome = 512<<20 - headSize - math.MaxUint16
)

// Option configures a [Store].
type Option interface{ apply(c *config) error }

type config struct {
	prefix     string
	maxOutcome int
	risks      map[Risk]bool

	replicas    int           // that must confirm a claim
	aof         bool          // the master's disk must confirm it
	waitTimeout time.Duration // for either
}

// waits reports whether a claim has to be confirmed.
func (c *config) waits() bool { return c.replicas > 0 || c.aof }

type optionFunc func(c *config) error

func (f optionFunc) apply(c *config) error { return f(c) }

func configure(opts []Option) (config, error) {
	c := config{prefix: DefaultPrefix, maxOutcome: DefaultMaxOutcome, risks: map[Risk]bool{}}
	for _, o := range opts {
		if o == nil {
			return c, errors.New("idemredis: an option is nil")
		}
		if err := o.apply(&c); err != nil {
			return c, err
		}
	}
	return c, nil
}

// WithPrefix begins the name of every record's key. What follows is
// "LENGTH:SCOPE:ID", with the length of the scope in bytes. A prefix must not
// be empty, so that records can be told from other keys. "idem:{}" makes a
// cluster spread keys over all of its slots whatever braces are in them; a
// prefix with text in braces puts all records on one node. Default:
// [DefaultPrefix].
func WithPrefix(prefix string) Option {
	return optionFunc(func(c *config) error {
		if prefix == "" {
			return errors.New("idemredis: the prefix is empty: leave the option out, or name the records' key space")
		}
		c.prefix = prefix
		return nil
	})
}

// WithMaxOutcome bounds the outcomes that are stored, in bytes; a larger one is
// [driver.ErrTooLarge]. Lower it to what the server allows (proto-max-bulk-len),
// or to what may pass through it without delaying others: a script copies the
// whole record while the server waits. Between 1 and [DefaultMaxOutcome], which
// is the default.
func WithMaxOutcome(n int) Option {
	return optionFunc(func(c *config) error {
		if n < 1 || n > DefaultMaxOutcome {
			return fmt.Errorf("idemredis: WithMaxOutcome(%d): it must be 1 to %d bytes", n, DefaultMaxOutcome)
		}
		c.maxOutcome = n
		return nil
	})
}

// WithWaitReplicas makes each granted claim wait until n replicas have
// confirmed it (WAIT, https://redis.io/docs/latest/commands/wait/), at most for
// the timeout. If fewer have, the claim is given back and is
// [driver.ErrBusy]: the operation does not run. It costs one more round
// trip, and a connection of its own for the time of a claim. A failover keeps
// the claim for sure only if every replica that may be promoted is counted in
// n. n is at least 1, the timeout at least 1 ms. Default: a claim waits for no
// replica.
func WithWaitReplicas(n int, timeout time.Duration) Option {
	return optionFunc(func(c *config) error {
		if n < 1 {
			return fmt.Errorf("idemredis: WithWaitReplicas(%d): wait for at least 1 replica, or leave the option out", n)
		}
		c.replicas = n
		return c.wait(timeout)
	})
}

// WithWaitAOF makes each granted claim wait until it is on the master's disk
// (WAITAOF, Redis 7.2 and any Valkey, https://redis.io/docs/latest/commands/waitaof/),
// at most for the timeout; else it is given back as with [WithWaitReplicas].
// It makes up for appendfsync everysec, where that may take a second. The timeout is
// at least 1 ms; with both options the longer one holds. Default: a claim is
// as durable as the server's settings make it.
func WithWaitAOF(timeout time.Duration) Option {
	return optionFunc(func(c *config) error {
		c.aof = true
		return c.wait(timeout)
	})
}

// wait sets the timeout, which WAIT counts in whole milliseconds and takes for
// ever if it is 0.
func (c *config) wait(timeout time.Duration) error {
	if timeout < time.Millisecond {
		return fmt.Errorf("idemredis: a claim cannot wait for %v to be confirmed: it takes at least 1 ms", timeout)
	}
	c.waitTimeout = max(c.waitTimeout, timeout)
	return nil
}

// Risk is a weakness of a server's settings that [Store.Verify] refuses.
type Risk uint8

// The risks; zero is none.
const (
	// RiskLostWrites: the server may lose or evict what it acknowledged, so that
	// an AtMostOnce operation may run again.
	RiskLostWrites Risk = 1
	// RiskFailover: a failover may promote a replica that has not seen the latest
	// claims, so that an AtMostOnce operation may run again.
	RiskFailover Risk = 2
)

// WithAcceptedRisk turns what [Store.Verify] refuses because of r into a
// warning. Default: no risk is accepted.
func WithAcceptedRisk(r Risk) Option {
	return optionFunc(func(c *config) error {
		if r != RiskLostWrites && r != RiskFailover {
			return fmt.Errorf("idemredis: Risk(%d) is none that can be accepted", r)
		}
		c.risks[r] = true
		return nil
	})
}
