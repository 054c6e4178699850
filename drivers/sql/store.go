package idemsql

import (
	"database/sql"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/jmoiron/sqlx"

	"github.com/idem-go/idem/driver"
	"github.com/idem-go/idem/internal/duplicates"
)

// DB is a pool that a [Store] can be built on.
type DB interface {
	*sqlx.DB | *sql.DB
}

// Store keeps the records of one table. It is safe for concurrent use. It has
// nothing to close: the statements that it prepares live as long as the pool,
// so build one Store for a table and keep it.
type Store struct {
	pool

	renewals *pool // of renewals: the same, if the user gave none
	dialect  *dialect
	config   config
	server   atomic.Pointer[server] // nil: nobody has asked it yet, or need not

	statements [statementCount]statement

	guess   *duplicates.Guess // whether to look before a claim
	flights flights
	pace    pace          // of purges
	queue   chan struct{} // of the writers, where there can be but one; else nil
}

// pool is a pool and what is prepared on it.
type pool struct {
	db       *sqlx.DB
	prepared [statementCount]atomic.Pointer[sql.Stmt]
}

var (
	_ driver.Driver         = (*Store)(nil)
	_ driver.Transactor     = (*Store)(nil)
	_ driver.Inspector      = (*Store)(nil)
	_ driver.Lister         = (*Store)(nil)
	_ driver.Resolver       = (*Store)(nil)
	_ driver.Purger         = (*Store)(nil)
	_ driver.Verifier       = (*Store)(nil)
	_ driver.Classifier     = (*Store)(nil)
	_ driver.Overlapper     = (*Store)(nil)
	_ driver.BatchClaimer   = (*Store)(nil)
	_ driver.BatchCompleter = (*Store)(nil)
	_ driver.BatchRenewer   = (*Store)(nil)
)

// New builds a store on a pool. It sends nothing: [Store.Migrate] creates the
// table, [Store.Verify] checks it. A nil pool, an option out of its range and a
// driver whose dialect is unknown are errors.
func New[T DB](db T, opts ...Option) (*Store, error) {
	pooled := wrap(db)
	if pooled == nil || pooled.DB == nil {
		return nil, errors.New("idemsql: the pool is nil")
	}
	c, err := configure(opts)
	if err != nil {
		return nil, err
	}
	c.said = c.dialect != 0
	if !c.said {
		if c.dialect, err = findDialect(pooled); err != nil {
			return nil, err
		}
	}
	d := c.dialect.spec()
	if pooled.DriverName() == "" {
		pooled = sqlx.NewDb(pooled.DB, d.name) // so that sqlx knows the placeholders of the user's named queries
	}
	s := &Store{pool: pool{db: pooled}, dialect: d, config: c, guess: duplicates.New()}
	s.renewals = &s.pool
	if c.heartbeat != nil {
		s.renewals = &pool{db: c.heartbeat}
	}
	for i, template := range d.templates {
		s.statements[i] = d.compile(template, &c)
	}
	if d.singleWriter {
		s.queue = make(chan struct{}, 1)
	}
	return s, nil
}

func wrap[T DB](db T) *sqlx.DB {
	switch db := any(db).(type) {
	case *sqlx.DB:
		return db
	case *sql.DB:
		return sqlx.NewDb(db, "")
	}
	return nil
}

// Capabilities implements [driver.Driver].
func (s *Store) Capabilities() driver.Capabilities {
	return driver.Capabilities{
		Contract:        driver.ContractVersion,
		Name:            s.dialect.name,
		Guarantees:      driver.GuaranteeSet(driver.AtLeastOnce, driver.AtMostOnce, driver.ExactlyOnce),
		Shared:          true,
		SingleWriter:    s.dialect.singleWriter,
		InFlightVisible: false, // other transactions cannot see what has not committed
		ClockPrecision:  s.dialect.unit,
		Features:        driver.FeatureTombstone | driver.FeatureReconcile,
	}
}

// Overlaps implements [driver.Overlapper]: stores may overlap if dialect, table
// and scope are the same. A pool does not tell which database it is open on, so
// two stores of one table name count as one even if they are not: give their
// operations key spaces of their own.
func (s *Store) Overlaps(p driver.OverlapParams) driver.OverlapResult {
	other, ok := driver.As[*Store](p.Other)
	return driver.OverlapResult{
		Overlap: ok && p.Scope == p.OtherScope && other.dialect == s.dialect &&
			strings.EqualFold(other.config.table, s.config.table),
	}
}
