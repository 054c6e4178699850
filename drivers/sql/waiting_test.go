package idemsql_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	idemsql "github.com/idem-go/idem/drivers/sql"
	"github.com/idem-go/idem/internal/testenv"
)

// inboxEnv is how long the inbox runs that duplicates wait for, instead of 3 s.
const inboxEnv = "IDEM_TEST_INBOX"

// S4: while an inbox runs, 50 duplicates with a wait of 200 ms, on a pool of 5
// connections in another process, have their answer in 300 ms, keep nobody
// from another key, and leave no session waiting in the server.
func TestDuplicatesOfALongInboxWaitNowhere(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s server) {
		t.Helper()
		long := 3 * time.Second
		if env := os.Getenv(inboxEnv); env != "" {
			var err error
			long, err = time.ParseDuration(env)
			must(t, err)
		}
		b := s.open(t)
		other := s.openTable(t, b.path, b.table)
		other.db.SetMaxOpenConns(5)
		other.db.SetMaxIdleConns(5)
		mine, theirs := inboxes(t, b), inboxes(t, other)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		entered, done := make(chan struct{}), make(chan error, 1)
		go func() {
			_, err := idem.Execute(ctx, "long", func(ctx context.Context) (int, error) {
				err := b.write("long")(ctx)
				close(entered)
				select {
				case <-time.After(long):
				case <-ctx.Done():
				}
				return 1, err
			}, idem.On(mine))
			done <- err
		}()
		<-entered
		var all sync.WaitGroup
		var mu sync.Mutex
		var slowest, slowestOther time.Duration
		for range 50 {
			all.Go(func() {
				began := time.Now()
				_, err := idem.Execute(ctx, "long", func(context.Context) (int, error) { return 0, errors.New("it ran") },
					idem.On(theirs), idem.WithWait(200*time.Millisecond))
				took := time.Since(began)
				if !errors.Is(err, idem.ErrInProgress) {
					t.Errorf("a duplicate is told %v", err)
				}
				mu.Lock()
				slowest = max(slowest, took)
				mu.Unlock()
			})
		}
		for i := range 10 { // meanwhile
			began := time.Now()
			_, err := idem.Execute(ctx, fmt.Sprint("other", i), func(ctx context.Context) (int, error) {
				return 1, other.write("other")(ctx)
			}, idem.On(theirs))
			if err != nil {
				t.Errorf("another key: %v", err)
			}
			slowestOther = max(slowestOther, time.Since(began))
		}
		if n := b.waiting(s); n != 0 {
			t.Errorf("%d sessions wait in the server", n)
		}
		all.Wait()
		if n := b.waiting(s); n != 0 {
			t.Errorf("%d sessions are left waiting in the server", n)
		}
		t.Logf("the slowest duplicate took %v, another key %v", slowest.Round(time.Millisecond), slowestOther.Round(time.Millisecond))
		if limit := slack(300 * time.Millisecond); slowest > limit {
			t.Errorf("the slowest duplicate took %v", slowest)
		}
		must(t, <-done)
		if n := b.count("long"); n != 1 || b.count("other") != 10 {
			t.Errorf("%d and %d effects", n, b.count("other"))
		}
	})
}

func inboxes(t *testing.T, b *bundle) *idem.Operation {
	t.Helper()
	op, err := idem.NewOperation("inbox", b.Store, idem.ExactlyOnce)
	must(t, err)
	return op
}

// waiting is how many sessions wait for a lock in a statement on this table.
func (b *bundle) waiting(s server) (n int) {
	b.t.Helper()
	query := "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%'"
	switch {
	case s.backend == testenv.MySQL:
		query = "SELECT count(*) FROM performance_schema.data_locks WHERE lock_status = 'WAITING' AND object_name = ?"
	case s.family():
		query = "SELECT count(*) FROM information_schema.innodb_lock_waits AS w JOIN information_schema.innodb_locks AS l " +
			"ON l.lock_id = w.requested_lock_id WHERE l.lock_table LIKE CONCAT('%', ?, '%')"
	}
	must(b.t, b.db.Get(&n, query, b.table))
	return n
}

// S5: new keys side by side, all at once.
func TestAdjacentNewKeysDoNotDeadlock(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s server) {
		t.Helper()
		b := s.open(t)
		for round := range 6 {
			start := make(chan struct{})
			var all sync.WaitGroup
			for i := range 50 {
				id := fmt.Sprintf("%d-%03d", round, i)
				all.Go(func() {
					<-start
					if round%2 == 0 {
						if _, err := b.transact(t.Context(), claimOf(id), b.write(id)); err != nil {
							t.Errorf("inbox %s: %v", id, err)
						}
						return
					}
					p := claimOf(id)
					_, err := b.Claim(t.Context(), p)
					if err == nil {
						_, err = b.Complete(t.Context(), completionOf(p, "x"))
					}
					if err != nil {
						t.Errorf("lease %s: %v", id, err)
					}
				})
			}
			close(start)
			all.Wait()
		}
	})
}

// A record that a long inbox has taken over keeps no purge waiting.
func TestAPurgePassesOverWhatALongInboxHolds(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s server) {
		t.Helper()
		b := s.open(t)
		b.lapsed(s, 10)
		_, err := b.transact(t.Context(), driver.ClaimParams{
			Key: driver.Key{Scope: "purged", ID: "3"}, Token: newToken(), Lease: time.Minute, OnLapse: driver.TakeOver,
			Guarantee: driver.ExactlyOnce, Format: 1,
		}, func(ctx context.Context) error {
			began := time.Now()
			res, err := b.Purge(context.WithoutCancel(ctx), driver.PurgeParams{Limit: 100})
			if err != nil || res.Purged != 9 || time.Since(began) > 2*time.Second {
				t.Errorf("%d are purged in %v: %v", res.Purged, time.Since(began), err)
			}
			return errors.New("enough")
		})
		if err == nil {
			t.Error("the inbox committed")
		}
	})
}

// S18: a caller's transaction decides over what joined it. S19: scopes are apart.
func TestAJoinedInboxGoesWithItsTransaction(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s server) {
		t.Helper()
		b := s.open(t)
		for _, commit := range []bool{false, true} {
			tx, err := b.db.Beginx()
			must(t, err)
			ctx := idemsql.Join(t.Context(), tx)
			for _, scope := range []string{"one", "two"} {
				p := claimOf("x")
				p.Key.Scope = scope
				res, err := b.transact(ctx, p, b.write("x"))
				if err != nil || !res.Claim.Joined || res.Claim.Decision != driver.DecisionClaimed {
					t.Errorf("commit %v, %s: %+v, %v", commit, scope, res.Claim, err)
				}
			}
			want := 0
			if commit {
				must(t, tx.Commit())
				want = 2
			} else {
				must(t, tx.Rollback())
			}
			if n := b.count("x"); n != want {
				t.Errorf("commit %v: %d effects", commit, n)
			}
		}
	})
}

// S15, S16: two processes migrate two tables at once.
func TestProcessesMigrateServersAtOnce(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s server) {
		t.Helper()
		b := s.open(t)
		table := b.table + "_m"
		t.Cleanup(func() {
			b.db.MustExec("DROP TABLE IF EXISTS " + table)
			b.db.MustExec("DROP TABLE IF EXISTS " + table + "_version")
		})
		fresh := s.openTable(t, b.path, table)
		if _, err := verify(fresh.Store, driver.AtMostOnce); !errors.Is(err, driver.ErrUnfit) || !strings.Contains(err.Error(), "call Migrate") {
			t.Errorf("Verify without a table says %v", err)
		}
		var all []*exec.Cmd
		for range 3 {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), migrateEnv+"="+strings.Join([]string{s.driver, b.path, table}, "\n"))
			cmd.Stderr = os.Stderr
			must(t, cmd.Start())
			all = append(all, cmd)
		}
		for _, cmd := range all {
			if err := cmd.Wait(); err != nil {
				t.Errorf("a process could not migrate: %v", err)
			}
		}
		_, err := verify(fresh.Store, driver.AtMostOnce)
		must(t, err)
		fresh.mustClaim(claimOf("x"), driver.DecisionClaimed)
		b.mustClaim(claimOf("x"), driver.DecisionClaimed)
		b.db.MustExec("INSERT INTO " + table + "_version (version) VALUES (99)")
		if _, err := verify(fresh.Store); !errors.Is(err, driver.ErrUnfit) {
			t.Errorf("Verify of a later schema says %v", err)
		}
	})
}

// migrateServer is migrateProcess on a server: driver, DSN and table, a line each.
func migrateServer(spec string) error {
	part := strings.Split(spec, "\n")
	db, err := sqlx.Open(part[0], part[1])
	if err != nil {
		return err
	}
	defer db.Close()
	s, err := idemsql.New(db, idemsql.WithTable(part[2]))
	if err == nil {
		err = s.Migrate(context.Background())
	}
	return err
}
