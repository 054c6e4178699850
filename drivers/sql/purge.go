package idemsql

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/idem-go/idem/driver"
)

// sweepWait bounds how long a claim's sweep may wait for another process.
const sweepWait = 50 * time.Millisecond

// maxRest bounds the rest between two batches; it is how often SQLite looks for
// a lock that it waits for.
const maxRest = 100 * time.Millisecond

// Purge implements [driver.Purger] with one statement, which finds the records
// by an index and deletes them under one lock: a record that is renewed,
// claimed or completed at the same time is either not found or gone before.
// Other writers wait for as long as a batch takes, so prefer many small ones: a
// thousand records take some 10 ms. Purges in a row rest as long as they work,
// so that writers in other processes, which find the lock free only by trying,
// get their turn.
func (s *Store) Purge(ctx context.Context, p driver.PurgeParams) (driver.PurgeResult, error) {
	if p.Limit <= 0 {
		return driver.PurgeResult{}, fmt.Errorf("%w: purging at most %d records", driver.ErrInvalid, p.Limit)
	}
	if err := s.alone(ctx); err != nil {
		return driver.PurgeResult{}, err
	}
	if err := s.learn(ctx, s.db); err != nil {
		return driver.PurgeResult{}, s.failed("purge", err)
	}
	if err := s.pace.rest(ctx); err != nil {
		return driver.PurgeResult{}, s.failed("purge", err)
	}
	var n int64
	err := s.writing(ctx, func() (err error) {
		started := time.Now()
		n, err = s.purge(ctx, p.Limit)
		s.pace.worked(time.Since(started))
		return err
	})
	if err != nil {
		return driver.PurgeResult{}, s.failed("purge", err)
	}
	return driver.PurgeResult{Purged: int(n)}, nil
}

func (s *Store) purge(ctx context.Context, limit int) (int64, error) {
	id := stPurge
	if f := s.server.Load(); f != nil && f.modern {
		id = stPurgeFree
	}
	res, err := session{Store: s}.exec(ctx, id, &args{pLimit: int64(limit)})
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// pace keeps long writes from following each other without a pause.
type pace struct {
	mu   sync.Mutex
	next time.Time
}

func (p *pace) worked(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = time.Now().Add(min(d, maxRest))
}

func (p *pace) rest(ctx context.Context) error {
	p.mu.Lock()
	d := time.Until(p.next)
	p.mu.Unlock()
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// sweep purges after one in n claims twice as many records as they made. It is
// nobody's business if it fails.
func (s *Store) sweep(ctx context.Context) {
	n := s.config.sweep
	if n == 0 || rand.IntN(n) != 0 || !s.tryEnter() { //nolint:gosec // nobody gains by foreseeing a sweep
		return
	}
	defer s.leave()
	ctx, cancel := context.WithTimeout(ctx, sweepWait)
	defer cancel()
	_, _ = s.purge(ctx, 2*n)
}
