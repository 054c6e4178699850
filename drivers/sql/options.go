package idemsql

import (
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
)

// The defaults of the options.
const (
	DefaultTable = "idem_records"
	DefaultSweep = 64
	// DefaultIdleLimit is how long a transaction of PostgreSQL may hear nothing
	// from its client.
	DefaultIdleLimit = 15 * time.Minute
)

// Option configures a [Store].
type Option interface{ apply(c *config) error }

type config struct {
	table      string
	dialect    Dialect
	mode       ClaimMode
	sweep      int
	unprepared bool
	risks      map[Risk]bool
	txOptions  *sql.TxOptions
	heartbeat  *sqlx.DB
	idle       time.Duration
	said       bool // the dialect was
}

type optionFunc func(c *config) error

func (f optionFunc) apply(c *config) error { return f(c) }

func configure(opts []Option) (config, error) {
	c := config{table: DefaultTable, sweep: DefaultSweep, idle: DefaultIdleLimit, risks: map[Risk]bool{}}
	for _, o := range opts {
		if o == nil {
			return c, errors.New("idemsql: an option is nil")
		}
		if err := o.apply(&c); err != nil {
			return c, err
		}
	}
	return c, nil
}

// The longest identifier of the databases to come is 63 bytes, and the longest
// derived name appends 8.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,47}$`)

// WithTable names the table of the records. Indexes and the table of the
// schema's version are named after it. It must be an identifier of ASCII
// letters, digits and underscores, of at most 48 bytes. Default:
// [DefaultTable].
func WithTable(name string) Option {
	return optionFunc(func(c *config) error {
		if !identifier.MatchString(name) || strings.HasPrefix(strings.ToLower(name), "sqlite_") {
			return fmt.Errorf("idemsql: %q cannot name a table: use up to 48 letters, digits and underscores", name)
		}
		c.table = name
		return nil
	})
}

// WithDialect says what the pool's database speaks, for a driver that [New]
// does not know. Its errors must carry the database's own code as those of the
// known drivers do, else a busy database is not recognised. Default: found by
// the pool's driver.
func WithDialect(d Dialect) Option {
	return optionFunc(func(c *config) error {
		if d.spec() == nil {
			return fmt.Errorf("idemsql: %v is no dialect of this package", d)
		}
		c.dialect = d
		return nil
	})
}

// WithClaimMode says how a key is claimed. Default: [Auto].
func WithClaimMode(m ClaimMode) Option {
	return optionFunc(func(c *config) error {
		if m > ReadFirst {
			return fmt.Errorf("idemsql: %v is no claim mode", m)
		}
		c.mode = m
		return nil
	})
}

// WithSweep purges a few records after one in n granted claims, chosen at
// random, so that a table stays small without anybody calling [Store.Purge]. It
// never waits for other writers and never fails a claim. 0: never. Default:
// [DefaultSweep].
func WithSweep(n int) Option {
	return optionFunc(func(c *config) error {
		if n < 0 {
			return fmt.Errorf("idemsql: sweeping after one in %d claims", n)
		}
		c.sweep = n
		return nil
	})
}

// WithoutPreparedStatements sends the text of every statement with it. Default:
// each statement is prepared at its first use on a connection and kept as long
// as the pool lives.
func WithoutPreparedStatements() Option {
	return optionFunc(func(c *config) error {
		c.unprepared = true
		return nil
	})
}

// WithTxOptions sets the isolation level of the transactions of ExactlyOnce
// operations. They must not be read-only. Default: the database's.
func WithTxOptions(o sql.TxOptions) Option {
	return optionFunc(func(c *config) error {
		if o.ReadOnly {
			return errors.New("idemsql: WithTxOptions: a read-only transaction cannot keep a record")
		}
		c.txOptions = &o
		return nil
	})
}

// WithHeartbeatPool gives the renewals of leases a pool of their own, so that
// functions that hold every connection of the store's pool do not lose their
// leases. It must be open on the same database, by the same driver; two
// connections are plenty. Like the other one it stays the user's. A nil pool is
// an error. Default: the store's pool.
func WithHeartbeatPool[T DB](db T) Option {
	return optionFunc(func(c *config) error {
		if c.heartbeat = wrap(db); c.heartbeat == nil || c.heartbeat.DB == nil {
			return errors.New("idemsql: WithHeartbeatPool: the pool is nil")
		}
		return nil
	})
}

// WithIdleLimit bounds how long the transaction of an ExactlyOnce operation may
// hear nothing from its client before the server ends it, so that a client that
// has vanished without a word does not hold its key for as long as the network
// takes to notice. A function that talks to the database more seldom than that fails. It
// concerns PostgreSQL, and only where the server's own
// idle_in_transaction_session_timeout is 0. 0: no bound; else at least 1 s.
// Default: [DefaultIdleLimit].
func WithIdleLimit(d time.Duration) Option {
	return optionFunc(func(c *config) error {
		if d != 0 && (d < time.Second || d > maxIdle) {
			return fmt.Errorf("idemsql: an idle limit of %v: use 0, or 1 s to %v", d, maxIdle)
		}
		c.idle = d
		return nil
	})
}

// maxIdle is what PostgreSQL can hold: a 32-bit number of milliseconds.
const maxIdle = (1<<31 - 1) * time.Millisecond

// Risk is a weakness of a database's settings that [Store.Verify] refuses.
type Risk uint8

// The risks; zero is none.
const (
	// RiskLostWrites: a power failure, or the end of the process if the
	// database is in memory, may undo what was acknowledged, so that an
	// AtMostOnce operation may run again.
	RiskLostWrites Risk = 1
)

// WithAcceptedRisk turns what [Store.Verify] refuses because of r into a
// warning. Default: no risk is accepted.
func WithAcceptedRisk(r Risk) Option {
	return optionFunc(func(c *config) error {
		if r != RiskLostWrites {
			return fmt.Errorf("idemsql: Risk(%d) is none that can be accepted", r)
		}
		c.risks[r] = true
		return nil
	})
}
