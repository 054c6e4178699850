package idemsql

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"
)

// Dialect is a database's SQL.
type Dialect uint8

// The dialects; zero is none.
const (
	SQLite Dialect = 1
)

// String returns the database's name.
func (d Dialect) String() string {
	if s := d.spec(); s != nil {
		return s.title
	}
	return "Dialect(" + strconv.Itoa(int(d)) + ")"
}

// spec returns what the package knows of d; nil: nothing.
func (d Dialect) spec() *dialect {
	if d == SQLite {
		return &sqlite
	}
	return nil
}

// statementID names one of a dialect's statements.
type statementID int

const (
	// stRead answers {columns} of a key's record, and the clock.
	stRead statementID = iota
	// stClaim claims a key that has no record. It answers a record as stRead
	// does, behind a column that says whether that is the claim now granted
	// (1), with the fingerprint from before it, or what keeps the claim from it
	// (0). No row: something does, read it. A dialect may grant takeovers here
	// as well, if it judges as [judge] does.
	stClaim
	// stTake takes the record that was read, if it is still what was read. It
	// answers as stClaim does.
	stTake
	// stComplete, stRelease and stSettle answer the clock, and no row where the
	// record is not what they expect; stRenew answers what is left of the
	// lease.
	stComplete
	stRelease
	stRenew
	stSettle
	// stRenewBatch takes the renewals as JSON (see [renewal]) and answers
	// scope, ID, token and what is left of the lease for each that it renewed.
	stRenewBatch
	stPurge // deletes at most :limit rows
	// stList and stListScope answer scope, ID and what stRead answers, for the
	// records past (:scope, :id), in that order.
	stList
	stListScope
	statementCount
)

// columns are what a record is read from, in the order of [record.dest].
const columns = `format, state, guarantee, on_lapse, token, fence, generation, attempt, took_over, fingerprint, ` +
	`claimed_at, lease_end, ended_at, retention, tombstone, outcome`

// dialect is all that differs between databases. In templates, {table},
// {columns} and {now} stand for the table, its [columns] and the clock in µs,
// and :name for a parameter.
type dialect struct {
	name, title string

	now          string
	unit         time.Duration // of the clock
	numbered     string        // what numbered placeholders begin with; "": they are plain question marks
	templates    [statementCount]string
	singleWriter bool
	maxOutcome   int

	// leases is how a lease is claimed where the user has not said; duplicates
	// is the share of duplicates, in percent, from which reading first is
	// cheaper for an inbox.
	leases     ClaimMode
	duplicates int64

	// migrateBegin takes a lock that keeps other migrations out.
	migrateBegin, migrateEnd, migrateUndo string
	versioned                             string // answers the number of version tables: 1 or 0

	drivers  []string // paths of the Go packages that speak it
	code     func(error) (failure, bool)
	kind     func(failure) kind
	settings func(context.Context, *verification) error // what Verify checks beside the schema
}

// findDialect finds the dialect of a pool by the package of its driver, which a
// name that the user gave to sql.Open would not tell.
func findDialect(db *sqlx.DB) (Dialect, error) {
	for d := SQLite; d.spec() != nil; d++ {
		if declaredIn(db.Driver(), d.spec().drivers) {
			return d, nil
		}
	}
	return 0, fmt.Errorf("idemsql: no dialect is known for the driver %T: if it speaks %v, say so with WithDialect",
		db.Driver(), SQLite)
}
