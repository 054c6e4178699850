// Package idemmemory is the reference driver of package idem: it keeps the
// records of one process in memory, with the standard library alone.
//
//	store, err := idemmemory.New()
//	payments, err := idem.NewOperation("payments", store, idem.AtLeastOnce)
//
// Its promises hold in this process and end with it. Other processes do not
// see its records: a service with two instances needs another driver. The
// number of records is bounded, see [WithMaxRecords].
package idemmemory

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/idem-go/idem/driver"
)

// DefaultMaxRecords is the default of [WithMaxRecords].
const DefaultMaxRecords = 100_000

// precision is what leases and retentions are rounded up to: that of fences.
const precision = time.Microsecond

// Option sets up a [Store].
type Option interface{ apply(s *Store) error }

type optionFunc func(*Store) error

func (f optionFunc) apply(s *Store) error { return f(s) }

// WithMaxRecords bounds the number of records. When the store is full, a new
// key takes the place of, in this order: a record that is past everything it
// was kept for, a released one, an expired one, the oldest completed one of an
// at-least-once operation, which then runs again. Claims, abandoned claims,
// uncertain records and at-most-once records are never dropped before their
// time; if there is nothing else, the claim of a new key is
// [driver.ErrBusy]. n is at least 1; default [DefaultMaxRecords].
func WithMaxRecords(n int) Option {
	return optionFunc(func(s *Store) error {
		if n < 1 {
			return fmt.Errorf("idemmemory: WithMaxRecords(%d): a store needs room for at least 1 record", n)
		}
		s.maxRecords = n
		return nil
	})
}

// Store keeps idempotency records in memory. It is safe for concurrent use; all
// users of one *Store see the same records. It starts no goroutine and holds
// nothing that would have to be closed.
type Store struct {
	maxRecords int

	mu      sync.Mutex
	records map[driver.Key]*record
	due     deadlines
	idle    [classes]list // what may be dropped early, each list oldest first
	fence   int64         // the highest fence of a record that was dropped
}

var (
	_ driver.Driver    = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
	_ driver.Lister    = (*Store)(nil)
	_ driver.Resolver  = (*Store)(nil)
	_ driver.Purger    = (*Store)(nil)
)

// New returns an empty store.
func New(opts ...Option) (*Store, error) {
	s := &Store{maxRecords: DefaultMaxRecords, records: make(map[driver.Key]*record)}
	for _, o := range opts {
		if o == nil {
			return nil, errors.New("idemmemory: a nil option")
		}
		if err := o.apply(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Capabilities implements [driver.Driver].
func (s *Store) Capabilities() driver.Capabilities {
	return driver.Capabilities{
		Contract:        driver.ContractVersion,
		Name:            "memory",
		Guarantees:      driver.GuaranteeSet(driver.AtLeastOnce, driver.AtMostOnce),
		Ephemeral:       true,
		InFlightVisible: true,
		ClockPrecision:  precision,
		Features:        driver.FeatureTombstone | driver.FeatureReconcile,
	}
}
