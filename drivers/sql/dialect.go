package idemsql

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/idem-go/idem/driver"
)

// Dialect is a database's SQL.
type Dialect uint8

// The dialects; zero is none.
const (
	SQLite     Dialect = 1
	PostgreSQL Dialect = 2
	MySQL      Dialect = 3
	MariaDB    Dialect = 4
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
	switch d {
	case SQLite:
		return &sqlite
	case PostgreSQL:
		return &postgres
	case MySQL:
		return &mysql
	case MariaDB:
		return &mariadb
	}
	return nil
}

// statementID names one of a dialect's statements.
type statementID int

const (
	// stRead answers {seen}: a key's record, and the clock. A clock that is
	// read after the record would find a lease lapsed that was renewed in time.
	stRead statementID = iota
	// stReadLatest is stRead inside a transaction, of what has been committed
	// since its snapshot too. Empty: the dialect has no need of it.
	stReadLatest
	// stClaim claims a key that has no record. It answers the clock; 0 or no
	// row: a record is, or was, in its way. stClaimTells also answers that
	// record, behind a 0. Empty: the dialect cannot.
	stClaim
	stClaimTells
	// stTake takes the record that was read, if it is still what was read. It
	// answers the clock.
	stTake
	// stLockClaim and stLockTake are stClaim and stTake inside a transaction,
	// which lock the key first and answer 1 if another transaction has it: they never wait for
	// one. Empty: the dialect has no need of it. Where stLockClaim cannot say
	// why it has no row, stLockTells does: 1, or 0 and the record.
	stLockClaim
	stLockTake
	stLockTells
	// stUnlock gives the lock of a key up, after a transaction that did not
	// complete. Empty: the transaction's end has.
	stUnlock
	// stComplete, stRelease and stSettle answer the clock, stRenew what is
	// left of the lease; no row: the record is not what they expect.
	// stUnlockComplete also gives up the lock of the key, where that outlives the transaction.
	stComplete
	stUnlockComplete
	stRelease
	stRenew
	stSettle
	// stClaimBatch, stCompleteBatch and stRenewBatch do for each entry of :batch
	// (see [batch]) what the statement for one does, and answer scope, ID and
	// its number for each that found what it expects. stReadBatch answers
	// scope, ID and what stRead answers.
	stClaimBatch
	stCompleteBatch
	stRenewBatch
	stReadBatch
	// stPurge deletes at most :limit rows. stPurgeFree leaves out those that
	// somebody has locked, on a server of which only some versions can.
	stPurge
	stPurgeFree
	// stList and stListScope answer scope, ID and what stRead answers, for the
	// records past (:scope, :id), in that order.
	stList
	stListScope
	statementCount
)

// dialect is all that differs between databases. In templates, {table},
// {record}, {seen}, {now}, {memory} and {idle} stand for the table, what a
// record is read from by a statement that has locked it, or by one that has
// not, the clock and [driver.FenceMemory] in µs and how long a transaction may
// be idle in ms, and :name for a parameter.
type dialect struct {
	name, title string

	now          string
	began        string        // the clock when the statement began: not later than what it sees. Empty: now
	head         string        // the numbers of a record and the clock as one text, see [head]
	unit         time.Duration // of the clock
	numbered     string        // what numbered placeholders begin with; "": they are plain question marks
	templates    [statementCount]string
	singleWriter bool
	maxOutcome   int
	stamps       bool                                 // a write answers its number as the last inserted ID, not as a row
	lock         func(table string, k driver.Key) any // the name of a key's lock; nil: the dialect has no need of it
	lockLasts    bool                                 // until the transaction has ended

	// leases is how a lease is claimed where the user has not said; duplicates
	// is the share of duplicates, in percent, from which reading first is
	// cheaper for an inbox.
	leases     ClaimMode
	duplicates int64

	// facts asks the server what learn wants to know. Empty: nothing.
	facts string

	// migrateBegin takes a lock that keeps other migrations out.
	migrateBegin, migrateEnd, migrateUndo []string
	versioned                             string // answers the number of version tables: 1 or 0

	schema   string   // the folder of its migrations; "": its name
	drivers  []string // paths of the Go packages that speak it
	code     func(error) (failure, bool)
	kind     func(failure) kind
	settings func(context.Context, *verification) error // what Verify checks beside the schema
}

// transaction returns the statements that a transaction may need.
func (d *dialect) transaction() []statementID {
	if d.templates[stLockClaim] == "" {
		return []statementID{stClaim, stRead, stTake, stComplete}
	}
	all := []statementID{stLockClaim, stRead, stLockTake, stUnlockComplete}
	for _, id := range []statementID{stReadLatest, stLockTells} {
		if d.templates[id] != "" {
			all = append(all, id)
		}
	}
	return all
}

// findDialect finds the dialect of a pool by the package of its driver, which a
// name that the user gave to sql.Open would not tell.
func findDialect(db *sqlx.DB) (Dialect, error) {
	for d := SQLite; d.spec() != nil; d++ {
		if declaredIn(db.Driver(), d.spec().drivers) {
			return d, nil
		}
	}
	return 0, fmt.Errorf("idemsql: no dialect is known for the driver %T: if it speaks %v, %v, %v or %v, say so with WithDialect",
		db.Driver(), SQLite, PostgreSQL, MySQL, MariaDB)
}
