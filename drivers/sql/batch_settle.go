package idemsql

import (
	"context"

	"github.com/idem-go/idem/driver"
)

// CompleteBatch implements [driver.BatchCompleter] with one statement, and one
// or two more for each claim that it did not find; on MySQL and MariaDB with a
// read if there are any. Outcomes above 16 KiB go by themselves.
func (s *Store) CompleteBatch(ctx context.Context, p driver.CompleteBatchParams) (driver.CompleteBatchResult, error) {
	if err := s.alone(ctx); err != nil {
		return driver.CompleteBatchResult{}, err
	}
	if err := s.learn(ctx, s.db); err != nil {
		return driver.CompleteBatchResult{}, s.failed("complete", err)
	}
	answers := make([]driver.CompleteAnswer, len(p.Completions))
	singly := func(i int) { answers[i].Result, answers[i].Err = s.Complete(ctx, p.Completions[i]) }
	completion := func(i int) (driver.Key, *args) {
		c := &p.Completions[i]
		if c.Validate() != nil || len(c.Outcome) > maxBatchOutcome {
			singly(i)
			return c.Key, nil
		}
		return c.Key, s.completeArgs(c)
	}
	in := session{Store: s}
	batches, rest := s.collect(stCompleteBatch, len(p.Completions), completion)
	for _, b := range batches {
		w, err := in.writeBatch(ctx, stCompleteBatch, b)
		if err == nil && s.dialect.stamps {
			err = in.stamped(ctx, b, &w)
		}
		for _, e := range b {
			now, done := w.of[e.key]
			if err != nil || !done {
				singly(e.place)
				continue
			}
			answers[e.place].Result = s.completedAt(now, &p.Completions[e.place])
		}
	}
	for _, i := range rest {
		singly(i)
	}
	return driver.CompleteBatchResult{Completions: answers}, nil
}

// stamped finds out which of a batch's records were completed by it.
func (s session) stamped(ctx context.Context, b batch, w *written) error {
	if w.rows == int64(len(b)) {
		for _, e := range b {
			w.of[e.key] = w.stamp
		}
		return nil
	}
	found, err := s.readBatch(ctx, b)
	for _, e := range b {
		r := found[e.key]
		if e.owns(r) && r.endedAt.Int64 == w.stamp {
			w.of[e.key] = w.stamp
		}
	}
	return err
}

// RenewBatch implements [driver.BatchRenewer] with one statement, on MySQL and
// MariaDB with two, and one more for each lease that was not found.
func (s *Store) RenewBatch(ctx context.Context, p driver.RenewBatchParams) (driver.RenewBatchResult, error) {
	if err := s.alone(ctx); err != nil {
		return driver.RenewBatchResult{}, err
	}
	if err := s.learn(ctx, s.renewals.db); err != nil {
		return driver.RenewBatchResult{}, s.failed("renew", err)
	}
	answers := make([]driver.RenewAnswer, len(p.Renewals))
	singly := func(i int) { answers[i].Result, answers[i].Err = s.Renew(ctx, p.Renewals[i]) }
	renewal := func(i int) (driver.Key, *args) {
		r := &p.Renewals[i]
		if answers[i].Err = r.Validate(); answers[i].Err != nil {
			return r.Key, nil
		}
		a := ownerArgs(r.Key, r.Token)
		a[pLease] = s.dialect.us(r.Lease)
		return r.Key, a
	}
	in := session{Store: s, on: s.renewals}
	batches, rest := s.collect(stRenewBatch, len(p.Renewals), renewal)
	for _, b := range batches {
		w, err := in.writeBatch(ctx, stRenewBatch, b)
		if err != nil {
			return driver.RenewBatchResult{}, s.failed("renew", err)
		}
		if s.dialect.stamps {
			if err := in.renewed(ctx, b, &w); err != nil {
				return driver.RenewBatchResult{}, s.failed("renew", err)
			}
		}
		for _, e := range b {
			if left, done := w.of[e.key]; done {
				answers[e.place].Result.LeaseLeft = duration(left)
				continue
			}
			singly(e.place)
		}
	}
	for _, i := range rest {
		singly(i)
	}
	return driver.RenewBatchResult{Renewals: answers}, nil
}

// renewed finds out what is left of the leases of a batch: whose claim is there
// now was there when the batch renewed it.
func (s session) renewed(ctx context.Context, b batch, w *written) error {
	found, err := s.readBatch(ctx, b)
	for _, e := range b {
		r := found[e.key]
		if e.owns(r) && r.state == driver.StateClaimed && r.leaseEnd.Valid {
			w.of[e.key] = max(r.leaseEnd.Int64-r.now, 1)
		}
	}
	return err
}
