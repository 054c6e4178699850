package idemclient

import (
	"errors"
	"fmt"
	"net/textproto"
	"time"
)

// The defaults of the options.
const (
	DefaultKeyHeader      = "Idempotency-Key"
	DefaultReplayed       = "Idempotency-Replayed"
	DefaultMaxTries       = 5
	DefaultMaxElapsedTime = 2 * time.Minute
	DefaultMaxRetryAfter  = time.Minute
	DefaultFirstBackOff   = 200 * time.Millisecond
	DefaultMaxBackOff     = 10 * time.Second
	DefaultMaxBody        = 1 << 20 // bytes
)

// Option configures a [Transport].
type Option interface{ apply(c *config) error }

type optionFunc func(*config) error

func (f optionFunc) apply(c *config) error { return f(c) }

type config struct {
	keyHeader, replayed string
	maxTries            uint
	maxElapsed          time.Duration
	maxRetryAfter       time.Duration
	firstBackOff        time.Duration
	maxBackOff          time.Duration
	maxBody             int64
}

func newConfig(opts []Option) (config, error) {
	c := config{
		keyHeader:     DefaultKeyHeader,
		replayed:      DefaultReplayed,
		maxTries:      DefaultMaxTries,
		maxElapsed:    DefaultMaxElapsedTime,
		maxRetryAfter: DefaultMaxRetryAfter,
		firstBackOff:  DefaultFirstBackOff,
		maxBackOff:    DefaultMaxBackOff,
		maxBody:       DefaultMaxBody,
	}
	for _, o := range opts {
		if o == nil {
			return c, errors.New("idemclient: an option is nil: leave it out")
		}
		if err := o.apply(&c); err != nil {
			return c, fmt.Errorf("idemclient: %w", err)
		}
	}
	return c, nil
}

// WithHeaderNames sets the names of the headers that carry the key and say
// that an answer is a stored one. Default: [DefaultKeyHeader], [DefaultReplayed].
func WithHeaderNames(key, replayed string) Option {
	return optionFunc(func(c *config) error {
		if key == "" || replayed == "" {
			return errors.New("WithHeaderNames: a header needs a name")
		}
		c.keyHeader, c.replayed = textproto.CanonicalMIMEHeaderKey(key), textproto.CanonicalMIMEHeaderKey(replayed)
		return nil
	})
}

// WithMaxTries sets how often a request is sent at most, the first time
// included. Default: [DefaultMaxTries].
func WithMaxTries(n uint) Option {
	return optionFunc(func(c *config) error {
		if n == 0 {
			return errors.New("WithMaxTries(0): a request is sent at least once: give 1 or more")
		}
		c.maxTries = n
		return nil
	})
}

// WithMaxElapsedTime sets after how long a request is not sent again, counted
// from its first try. The last answer or error is returned as soon as the next
// try would be later. A try itself is bounded by the request's context alone.
// Default: [DefaultMaxElapsedTime].
func WithMaxElapsedTime(d time.Duration) Option {
	return optionFunc(func(c *config) error {
		c.maxElapsed = d
		return checkDuration("WithMaxElapsedTime", d)
	})
}

// WithMaxRetryAfter sets which Retry-After is waited for. An answer with a longer one is
// returned at once, since to come back sooner would be against the server's word. Default: [DefaultMaxRetryAfter].
func WithMaxRetryAfter(d time.Duration) Option {
	return optionFunc(func(c *config) error {
		c.maxRetryAfter = d
		return checkDuration("WithMaxRetryAfter", d)
	})
}

// WithBackOff sets how long to wait, where the server does not say: about
// first, then growing up to about longest, with jitter. Default:
// [DefaultFirstBackOff], [DefaultMaxBackOff].
func WithBackOff(first, longest time.Duration) Option {
	return optionFunc(func(c *config) error {
		if longest < first {
			return fmt.Errorf("WithBackOff(%v, %v): the longest wait is shorter than the first", first, longest)
		}
		c.firstBackOff, c.maxBackOff = first, longest
		return checkDuration("WithBackOff", first)
	})
}

// WithMaxBody sets up to how many bytes a body without GetBody is copied, so
// that the request can be repeated; 0: none is. Default: [DefaultMaxBody].
func WithMaxBody(n int64) Option {
	return optionFunc(func(c *config) error {
		if n < 0 {
			return fmt.Errorf("WithMaxBody(%d): give a number of bytes, or 0 to copy none", n)
		}
		c.maxBody = n
		return nil
	})
}

// checkDuration catches forgotten units too: 30 is 30 ns.
func checkDuration(option string, d time.Duration) error {
	if d < time.Millisecond {
		return fmt.Errorf("%s(%v): give at least a millisecond: 30*time.Second, not 30", option, d)
	}
	return nil
}
