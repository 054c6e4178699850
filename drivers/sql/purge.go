package idemsql

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/idem-go/idem/driver"
)

// sweepWait bounds how long a claim's sweep may wait for another process.
const sweepWait = 50 * time.Millisecond

// Purge implements [driver.Purger] with one statement, which finds the records
// by an index and deletes them under one lock: a record that is renewed, claimed or completed at
// the same time is either not found or gone before. Other writers wait for as long as a
// batch takes, so prefer many small ones: a thousand records take some 10 ms.
func (s *Store) Purge(ctx context.Context, p driver.PurgeParams) (driver.PurgeResult, error) {
	if p.Limit <= 0 {
		return driver.PurgeResult{}, fmt.Errorf("%w: purging at most %d records", driver.ErrInvalid, p.Limit)
	}
	if err := s.alone(ctx); err != nil {
		return driver.PurgeResult{}, err
	}
	var n int64
	err := s.writing(ctx, func() (err error) {
		n, err = s.purge(ctx, p.Limit)
		return err
	})
	if err != nil {
		return driver.PurgeResult{}, s.failed("purge", err)
	}
	return driver.PurgeResult{Purged: int(n)}, nil
}

func (s *Store) purge(ctx context.Context, limit int) (int64, error) {
	return session{Store: s}.exec(ctx, stPurge, &args{pLimit: int64(limit)})
}

// sweep purges after one in n claims twice as many records as they made. It is
// nobody's business if it fails.
func (s *Store) sweep(ctx context.Context) {
	n := s.config.sweep
	if n == 0 || rand.IntN(n) != 0 || !s.tryEnter() {
		return
	}
	defer s.leave()
	ctx, cancel := context.WithTimeout(ctx, sweepWait)
	defer cancel()
	_, _ = s.purge(ctx, 2*n)
}
