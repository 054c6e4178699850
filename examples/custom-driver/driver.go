// Package boltdriver is an idem driver on a bbolt file: the example of
// docs/writing-a-driver.md. It keeps what it must and no more: the five
// methods, leases and guards.
package boltdriver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/idem-go/idem/driver"
)

var bucket = []byte("idem")

// Store keeps records in a bbolt file. bbolt lets one process open a file, so
// the records are not shared.
type Store struct{ db *bbolt.DB }

var _ driver.Driver = (*Store)(nil)

// New returns a store on a database that its caller opened and closes.
func New(db *bbolt.DB) (*Store, error) {
	if db == nil {
		return nil, errors.New("boltdriver: the database is nil")
	}
	err := db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(bucket)
		return err
	})
	return &Store{db: db}, err
}

// Capabilities implements [driver.Driver].
func (s *Store) Capabilities() driver.Capabilities {
	return driver.Capabilities{
		Contract:        driver.ContractVersion,
		Name:            "bolt",
		Guarantees:      driver.GuaranteeSet(driver.AtLeastOnce, driver.AtMostOnce),
		InFlightVisible: true,
		ClockPrecision:  precision,
		Features:        driver.FeatureTombstone | driver.FeatureReconcile,
	}
}

// Claim implements [driver.Driver].
func (s *Store) Claim(ctx context.Context, p driver.ClaimParams) (res driver.ClaimResult, err error) {
	if err := p.Validate(); err != nil {
		return res, err
	}
	err = s.step(ctx, p.Key, func(r record, now time.Time) (record, error) {
		r, res, err = r.claim(now, p)
		return r, err
	})
	return res, err
}

// Complete implements [driver.Driver].
func (s *Store) Complete(ctx context.Context, p driver.CompleteParams) (res driver.CompleteResult, err error) {
	if err := p.Validate(); err != nil {
		return res, err
	}
	err = s.step(ctx, p.Key, func(r record, now time.Time) (record, error) {
		if r.Token != p.Token || r.State == driver.StateReleased {
			return r, driver.ErrLost
		}
		if res.Already = r.State != driver.StateClaimed; !res.Already {
			r.State, r.Outcome, r.EndedAt, r.Format = p.To, p.Outcome, now, p.Format
			r.Retention, r.Tombstone = p.Retention, p.Tombstone
		}
		res.CompletedAt, res.LifeLeft = r.EndedAt, left(now, after(r.EndedAt, r.Retention))
		return r, nil
	})
	return res, err
}

// Release implements [driver.Driver].
func (s *Store) Release(ctx context.Context, p driver.ReleaseParams) (res driver.ReleaseResult, err error) {
	if err := p.Validate(); err != nil {
		return res, err
	}
	return res, s.step(ctx, p.Key, func(r record, now time.Time) (record, error) {
		switch {
		case r.Token != p.Token || r.State != driver.StateClaimed && r.State != driver.StateReleased:
			return r, driver.ErrLost
		case r.State == driver.StateClaimed:
			r.State, r.EndedAt, r.Fingerprint = driver.StateReleased, now, nil
			r.Retention, r.Tombstone = max(p.Keep, driver.FenceMemory), 0
		}
		return r, nil
	})
}

// Renew implements [driver.Driver].
func (s *Store) Renew(ctx context.Context, p driver.RenewParams) (res driver.RenewResult, err error) {
	if err := p.Validate(); err != nil {
		return res, err
	}
	err = s.step(ctx, p.Key, func(r record, now time.Time) (record, error) {
		if r.Token != p.Token || r.State != driver.StateClaimed {
			return r, driver.ErrLost
		}
		if end := now.Add(driver.RoundUp(p.Lease, precision)); end.After(r.LeaseEnd) {
			r.LeaseEnd = end
		}
		res.LeaseLeft = left(now, r.LeaseEnd)
		return r, nil
	})
	return res, err
}

// step is one atomic step: it reads the record, lets f change it, and writes it
// if f succeeded. The clock is read inside, after the wait for bbolt's one writer.
func (s *Store) step(ctx context.Context, k driver.Key, f func(r record, now time.Time) (record, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.db.Update(func(tx *bbolt.Tx) error {
		b, name := tx.Bucket(bucket), []byte(k.String())
		var r record
		if stored := b.Get(name); stored != nil {
			if err := json.Unmarshal(stored, &r); err != nil { //nolint:musttag // the names of the fields are the format
				return fmt.Errorf("%w: %w", driver.ErrCorrupt, err)
			}
			if err := r.check(); err != nil {
				return err
			}
		}
		r, err := f(r, time.Now().Truncate(precision))
		if err != nil {
			return err // which rolls back
		}
		stored, err := json.Marshal(r) //nolint:musttag // likewise
		if err != nil {
			return err
		}
		return b.Put(name, stored)
	})
}
