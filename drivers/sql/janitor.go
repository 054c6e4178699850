package idemsql

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/idem-go/idem/driver"
)

// Janitor purges until ctx ends, in the caller's goroutine: batches of at most
// limit records until nothing is left, then a rest of every, give or take a
// quarter, so that the janitors of several processes do not meet. A batch that
// fails is tried again after the rest. It returns the cause of ctx's end,
// joined with the last batch's error if that failed; at once, it returns
// driver.ErrInvalid if every is below a millisecond or limit below 1.
//
// It is for tables whose records [WithSweep] would not keep up with, or for a
// store that does not sweep:
//
//	group.Go(func() error { return store.Janitor(ctx, time.Minute, 1000) })
func (s *Store) Janitor(ctx context.Context, every time.Duration, limit int) error {
	if every < time.Millisecond || limit <= 0 {
		return fmt.Errorf("%w: purging %d records every %v", driver.ErrInvalid, limit, every)
	}
	for {
		err := s.purgeAll(ctx, limit)
		if sleep(ctx, every-every/4+rand.N(every/2+1)) != nil { //nolint:gosec // jitter is no secret
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

func (s *Store) purgeAll(ctx context.Context, limit int) error {
	for {
		res, err := s.Purge(ctx, driver.PurgeParams{Limit: limit})
		switch {
		case err != nil && ctx.Err() != nil:
			return nil //nolint:nilerr // it was only told to stop
		case err != nil || res.Purged < limit:
			return err
		}
	}
}
