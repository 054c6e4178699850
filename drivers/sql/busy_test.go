package idemsql_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem/driver"
	idemsql "github.com/idem-go/idem/drivers/sql"
)

// S13: 32 writers × 100 inbox calls on one file.
func TestWritersWaitForEachOtherAndReadersGoOn(t *testing.T) {
	t.Parallel()
	const writers, calls = 32, 100
	a := setup(t)
	b := setupAt(t, a.path) // half of the writers, as another process
	done := a.mustTransact(claimOf("before"))
	var wg sync.WaitGroup
	for w := range writers {
		s := []*bundle{a, b}[w%2]
		wg.Go(func() {
			for i := range calls {
				id := fmt.Sprintf("%d-%d", w, i)
				if _, err := s.transact(t.Context(), claimOf(id), effect(id)); err != nil {
					t.Errorf("call %s: %v", id, err)
					return
				}
			}
		})
	}
	var reads atomic.Int64
	stop := make(chan struct{})
	go func() { wg.Wait(); close(stop) }()
	for reading := true; reading; {
		select {
		case <-stop:
			reading = false
		default:
			started := time.Now()
			if res := a.mustClaim(claimOf("before"), driver.DecisionCompleted); string(res.Outcome) != done {
				t.Errorf("the replay is %q", res.Outcome)
			}
			if d := time.Since(started); d > 2*time.Second {
				t.Errorf("a replay waited for the writers: %v", d)
			}
			reads.Add(1)
		}
	}
	var n int
	must(t, a.db.Get(&n, "SELECT count(DISTINCT id) FROM effects"))
	if n != writers*calls || a.rows() != writers*calls+1 {
		t.Errorf("%d effects and %d records of %d calls", n, a.rows(), writers*calls)
	}
	t.Logf("%d replays meanwhile", reads.Load())
}

func (b *bundle) mustTransact(p driver.ClaimParams) string {
	b.t.Helper()
	_, err := b.transact(b.t.Context(), p, func(context.Context) error { return nil })
	must(b.t, err)
	return p.Key.ID
}

// A plain DSN: no busy timeout, no immediate transactions, rollback journal.
func TestBusyIsRetriedWhateverTheDSN(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/plain.db"
	s := setupDSN(t, path, "file:"+path)
	unlock := s.lock()
	type answer struct {
		what string
		err  error
	}
	answers := make(chan answer)
	lease, inbox := claimOf("lease"), claimOf("inbox")
	go func() {
		_, err := s.Claim(t.Context(), lease)
		answers <- answer{"claim", err}
	}()
	go func() {
		_, err := s.transact(t.Context(), inbox, effect("inbox"))
		answers <- answer{"transact", err}
	}()
	left := 2
	select {
	case a := <-answers:
		left--
		t.Errorf("%s did not wait for the lock: %v", a.what, a.err)
	case <-time.After(100 * time.Millisecond):
	}
	unlock()
	for range left {
		if a := <-answers; a.err != nil {
			t.Errorf("%s: %v", a.what, a.err)
		}
	}
	if s.effects("inbox") != 1 {
		t.Error("the effect of the inbox is missing")
	}
}

func TestBusyEndsWithTheContext(t *testing.T) {
	t.Parallel()
	s := setup(t)
	held := claimOf("held")
	s.mustClaim(held, driver.DecisionClaimed)
	unlock := s.lock()
	defer unlock()
	calls := map[string]func(ctx context.Context) error{
		"claim": func(ctx context.Context) error {
			_, err := s.Claim(ctx, claimOf("new"))
			return err
		},
		"complete": func(ctx context.Context) error {
			_, err := s.Complete(ctx, completionOf(held, "x"))
			return err
		},
		"renew": func(ctx context.Context) error {
			_, err := s.Renew(ctx, renewalOf(held, time.Hour))
			return err
		},
		"release": func(ctx context.Context) error {
			_, err := s.Release(ctx, releaseOf(held))
			return err
		},
		"transact": func(ctx context.Context) error {
			_, err := s.transact(ctx, claimOf("inbox"), func(context.Context) error {
				t.Error("fn ran without the lock")
				return nil
			})
			return err
		},
	}
	for what, call := range calls {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		started := time.Now()
		err := call(ctx)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v does not wrap the context's error", what, err)
		}
		if d := time.Since(started); d > time.Second {
			t.Errorf("%s went on for %v after its context had ended", what, d)
		}
	}
	if n := s.rows(); n != 1 {
		t.Errorf("%d records, want the one from before", n)
	}
	s.mustClaim(claimOf("held"), driver.DecisionInFlight)
}

func TestBusyForTooLongIsErrBusy(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for idemsql.BusyWait")
	}
	path := t.TempDir() + "/plain.db"
	s := setupDSN(t, path, "file:"+path+"?_pragma=journal_mode(WAL)")
	unlock := s.lock()
	defer unlock()
	started := time.Now()
	if _, err := s.Claim(t.Context(), claimOf("new")); !errors.Is(err, driver.ErrBusy) {
		t.Errorf("%v is not ErrBusy", err)
	}
	if d := time.Since(started); d > idemsql.BusyWait+time.Second {
		t.Errorf("it took %v to give up", d)
	}
}

// Rule 5: the clock is read after the wait for the lock.
func TestALeaseBeginsWhenTheLockIsHeld(t *testing.T) {
	t.Parallel()
	const wait, lease = 300 * time.Millisecond, 200 * time.Millisecond
	s := setup(t)
	old := claimOf("taken")
	old.Lease = time.Millisecond
	s.mustClaim(old, driver.DecisionClaimed)
	held := claimOf("renewed")
	held.Lease = time.Millisecond
	s.mustClaim(held, driver.DecisionClaimed)
	time.Sleep(5 * time.Millisecond) // both lapse
	for what, call := range map[string]func() (time.Duration, error){
		"a new key": func() (time.Duration, error) {
			p := claimOf("new")
			p.Lease = lease
			res, err := s.Claim(t.Context(), p)
			return res.LeaseLeft, err
		},
		"a takeover": func() (time.Duration, error) {
			p := claimOf("taken")
			p.Lease = lease
			res, err := s.Claim(t.Context(), p)
			return res.LeaseLeft, err
		},
		"a renewal": func() (time.Duration, error) {
			res, err := s.Renew(t.Context(), renewalOf(held, lease))
			return res.LeaseLeft, err
		},
	} {
		unlock := s.lock()
		time.AfterFunc(wait, unlock)
		started := time.Now()
		left, err := call()
		must(t, err)
		if time.Since(started) < wait {
			t.Errorf("%s did not wait for the lock", what)
		}
		if left != lease {
			t.Errorf("%s: %v left of a lease of %v", what, left, lease)
		}
	}
	var end, now int64
	must(t, s.db.QueryRow("SELECT max(lease_end) FROM idem_records").Scan(&end))
	if now = time.Now().UnixMicro(); end < now {
		t.Errorf("the latest lease ended %d µs before it was granted", now-end)
	}
}

// A lease of n ms is not over before n ms have passed, although its clock
// drops what is below a millisecond.
func TestALeaseIsNeverShorterThanAsked(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for i := range 20 {
		p := claimOf(strconv.Itoa(i))
		p.Lease = 3 * time.Millisecond
		asked := time.Now()
		s.mustClaim(p, driver.DecisionClaimed)
		next := claimOf(strconv.Itoa(i))
		for {
			res, err := s.Claim(t.Context(), next)
			must(t, err)
			if res.Decision == driver.DecisionClaimed {
				break
			}
		}
		if d := time.Since(asked); d < p.Lease {
			t.Errorf("a lease of %v was over %v after it was asked for", p.Lease, d)
		}
	}
}
