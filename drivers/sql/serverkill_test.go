package idemsql_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	idemsql "github.com/idem-go/idem/drivers/sql"
)

// operationsEnv is during how many operations, for each guarantee, a server is killed.
const operationsEnv = "IDEM_TEST_OPERATIONS"

const serverKills = 2

// TestOnAServerOfItsOwn is what would disturb the other users of a server.
func TestOnAServerOfItsOwn(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts servers")
	}
	onServers(t, func(t *testing.T, s server) {
		t.Helper()
		p := newPrivate(t, t.Name()[len("TestOnAServerOfItsOwn/"):])
		b := s.own(t, p)
		replaysWriteNothing(t, s, b)
		if s.family() {
			refusedCommit(t, s, b)
			largeOutcomes(t, b)
		}
		serverKilled(t, p, b)
	})
}

// own opens a table on a server of the test's own, which needs no cleaning up.
func (s server) own(t *testing.T, p *private) *bundle {
	t.Helper()
	b := s.openTable(t, p.dsn, "own")
	must(t, b.Migrate(t.Context()))
	b.db.MustExec("CREATE TABLE own_effects (id VARCHAR(300) NOT NULL)")
	return b
}

// replaysWriteNothing counts what the server writes in a thousand warm replays.
func replaysWriteNothing(t *testing.T, s server, b *bundle) {
	t.Helper()
	p := claimOf("replayed")
	b.mustClaim(p, driver.DecisionClaimed)
	b.mustComplete(p, "x")
	_, err := b.transact(t.Context(), claimOf("inbox"), b.write("inbox"))
	must(t, err)
	replay := func(n int) {
		for range n {
			b.mustClaim(claimOf("replayed"), driver.DecisionCompleted)
			res, err := b.transact(t.Context(), claimOf("inbox"), nil)
			if err != nil || res.Claim.Decision != driver.DecisionCompleted {
				t.Fatal(res.Claim.Decision, err)
			}
		}
	}
	written := func() (n int64) {
		switch {
		case !s.family():
			must(t, b.db.Get(&n, "SELECT CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS text) AS bigint)"))
		default:
			var name string
			must(t, b.db.QueryRow("SHOW GLOBAL STATUS LIKE 'Innodb_os_log_written'").Scan(&name, &n))
		}
		return n
	}
	replay(200)
	var window int64 = -1
	for range 10 { // what the server does by itself comes now and then
		idle := written()
		time.Sleep(50 * time.Millisecond)
		if idle != written() {
			continue
		}
		before := written()
		replay(500)
		if window = written() - before; window == 0 {
			break
		}
	}
	t.Logf("1000 replays write %d (transaction IDs, or bytes of redo)", window)
	if window != 0 {
		t.Errorf("1000 replays write %d", window)
	}
}

// refusedCommit has the server refuse a COMMIT. Nothing may come of the
// transaction afterwards, whatever its connection is used for.
func refusedCommit(t *testing.T, s server, b *bundle) {
	t.Helper()
	// One without the right to write to a read-only server, and with no more
	// rights than the documentation asks for.
	b.db.MustExec("CREATE USER IF NOT EXISTS 'plain'@'%' IDENTIFIED BY 'plain'")
	b.db.MustExec("GRANT SELECT, INSERT, UPDATE, DELETE ON idem.* TO 'plain'@'%'")
	plain := s.one(t, &bundle{t: t, path: strings.Replace(b.path, "idem:idem@", "plain:plain@", 1), table: b.table})
	_, err := plain.transact(t.Context(), claimOf("refused"), func(ctx context.Context) error {
		err := plain.write("refused")(ctx)
		_, e := b.db.ExecContext(ctx, "SET GLOBAL read_only = 1")
		return errors.Join(err, e)
	})
	_, e := b.db.Exec("SET GLOBAL read_only = 0")
	must(t, e)
	if err == nil {
		t.Error("the server did not refuse the COMMIT")
	}
	_, err = plain.transact(t.Context(), claimOf("next"), plain.write("next"))
	must(t, err)
	if n := b.count("refused"); n != 0 {
		t.Errorf("after a refused COMMIT there are %d effects", n)
	}
}

// largeOutcomes has a result that is larger than the server's packets.
func largeOutcomes(t *testing.T, b *bundle) {
	t.Helper()
	for _, size := range []int{1 << 20, 17 << 20, 65 << 20} {
		p := claimOf("large " + strconv.Itoa(size))
		b.mustClaim(p, driver.DecisionClaimed)
		c := completionOf(p, "")
		c.Outcome = make([]byte, size)
		_, err := b.Complete(t.Context(), c)
		if err != nil && !errors.Is(err, driver.ErrTooLarge) {
			t.Errorf("%d bytes: %v", size, err)
		}
		if err != nil {
			b.mustComplete(p, "small")
		}
		res := b.mustClaim(claimOf(p.Key.ID), driver.DecisionCompleted)
		if err == nil && len(res.Outcome) != size {
			t.Errorf("%d bytes come back as %d", size, len(res.Outcome))
		}
	}
}

// serverKilled kills the server in the middle of operations, and starts it again.
func serverKilled(t *testing.T, p *private, b *bundle) {
	t.Helper()
	n := number(t, operationsEnv, 200)
	for _, g := range []idem.Guarantee{idem.ExactlyOnce, idem.AtMostOnce} {
		o := &outage{bundle: b, guarantee: g, n: n, told: make([]atomic.Bool, n)}
		var opts []idem.OperationOption
		if g == idem.AtMostOnce {
			opts = append(opts, idem.WithLeaseTTL(6*time.Second))
		}
		var err error
		o.op, err = idem.NewOperation("outage", b.Store, g, opts...)
		must(t, err)
		o.run(p)
	}
}

type outage struct {
	*bundle

	guarantee idem.Guarantee
	op        *idem.Operation
	n         int
	next      atomic.Int64
	settled   atomic.Int64
	failures  atomic.Int64
	told      []atomic.Bool // of success
}

func (o *outage) key(i int) string { return fmt.Sprintf("%v-%d", o.guarantee, i) }

func (o *outage) run(p *private) {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), 4*time.Minute)
	defer cancel()
	var workers sync.WaitGroup
	for range 16 {
		workers.Go(func() { o.work(ctx) })
	}
	for k := range serverKills {
		for o.settled.Load() < int64(o.n*(k+1)/(serverKills+1)) && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		p.kill()
		p.up()
	}
	workers.Wait()
	if o.settled.Load() != int64(o.n) {
		o.t.Fatalf("%v: only %d of %d keys were settled", o.guarantee, o.settled.Load(), o.n)
	}
	unknown := 0
	for i := range o.n {
		effects := o.count(o.key(i))
		switch told := o.told[i].Load(); {
		case told && effects != 1, !told && o.guarantee == idem.ExactlyOnce, effects > 1:
			o.t.Errorf("%s: told of success %v, %d effects", o.key(i), told, effects)
		case !told:
			unknown++
		}
	}
	o.t.Logf("%v: %d keys, %d kills of the server, %d failed calls, %d keys unknown for good",
		o.guarantee, o.n, serverKills, o.failures.Load(), unknown)
}

// work calls keys until each has its final answer.
func (o *outage) work(ctx context.Context) {
	for i := int(o.next.Add(1)) - 1; i < o.n; i = int(o.next.Add(1)) - 1 {
		for ctx.Err() == nil {
			_, err := idem.Execute(ctx, o.key(i), o.effect(o.key(i)), idem.On(o.op))
			e, ok := errors.AsType[*idem.Error](err)
			if err == nil || ok && errors.Is(e, idem.ErrOutcomeUnknown) && e.Final {
				o.told[i].Store(err == nil)
				break
			}
			if n := o.failures.Add(1); n%1000 == 1 {
				o.t.Logf("%s fails: %v", o.key(i), err)
			}
			time.Sleep(20 * time.Millisecond)
		}
		if ctx.Err() == nil {
			o.settled.Add(1)
		}
	}
}

func (o *outage) effect(key string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		if tx, ok := idemsql.Tx(ctx); ok {
			_, err := tx.ExecContext(ctx, tx.Rebind("INSERT INTO own_effects (id) VALUES (?)"), key)
			return key, err
		}
		_, err := o.db.ExecContext(ctx, o.db.Rebind("INSERT INTO own_effects (id) VALUES (?)"), key)
		return key, err
	}
}
