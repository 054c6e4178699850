package brokers_test

import (
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/idem-go/idem"
	idemsql "github.com/idem-go/idem/drivers/sql"
	"github.com/idem-go/idem/internal/testenv"
)

// messagesEnv sets how many messages go through each broker; the full number is 10000.
const messagesEnv = "IDEM_TEST_MESSAGES"

const consumers = 2

// TestKilledConsumersKeepTheGuarantee has consumers killed at random while messages are sent twice, delivered again
// and fail: each message has exactly one effect with the inbox, at most one with the guard, and at least one with the
// lease.
func TestKilledConsumersKeepTheGuarantee(t *testing.T) {
	t.Parallel()
	n := 100
	if given := os.Getenv(messagesEnv); given != "" {
		var err error
		n, err = strconv.Atoi(given)
		must(t, err)
	}
	for name := range brokers {
		for _, g := range []idem.Guarantee{idem.ExactlyOnce, idem.AtMostOnce, idem.AtLeastOnce} {
			t.Run(fmt.Sprintf("%s/%v", name, g), func(t *testing.T) {
				t.Parallel()
				prove(t, name, g, n)
			})
		}
	}
}

func prove(t *testing.T, name string, g idem.Guarantee, n int) {
	t.Helper()
	do := task{Broker: name, Topic: newName(), Table: newName(), Guarantee: g, DSN: testenv.Backend(t, testenv.Postgres)}
	db := prepare(t, do)
	b := brokers[name]
	do.Address = b.start(t, do.Topic)
	keys := shuffled(n)
	must(t, b.publish(t.Context(), do, keys))

	running := make([]*process, consumers)
	for i := range running {
		running[i] = do.start(t)
	}
	began, kills := time.Now(), 0
	for ; kills < max(3, n/100); kills++ {
		time.Sleep(b.pause/2 + mathrand.N(b.pause))
		i := mathrand.IntN(len(running))
		running[i].kill()
		running[i] = do.start(t)
	}
	for {
		await(t, do)
		for i := range running {
			running[i].kill()
			kills++
		}
		if left, err := b.left(t.Context(), do, true); left == 0 || err != nil {
			must(t, err)
			break
		}
		for i := range running {
			running[i] = do.start(t)
		}
	}
	once, more := count(t, db, do)
	t.Logf("%d messages, %d sent, %d kills in %v: %d had one effect, %d more, %d none",
		n, len(keys), kills, time.Since(began).Round(time.Second), once, more, n-once-more)
	switch {
	case g == idem.ExactlyOnce && (once != n || more != 0),
		g == idem.AtMostOnce && (more != 0 || once < n*8/10),
		g == idem.AtLeastOnce && once+more != n:
		t.Errorf("%v does not hold", g)
	}
}

// await waits until the broker has no message left to deliver.
func await(t *testing.T, do task) {
	t.Helper()
	for end := time.Now().Add(20 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		left, err := brokers[do.Broker].left(t.Context(), do, false)
		must(t, err)
		if left == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d messages are left", left)
		}
	}
}

// prepare makes the tables.
func prepare(t *testing.T, do task) *sqlx.DB {
	t.Helper()
	db := sqlx.MustOpen("postgres", do.DSN)
	store, err := idemsql.New(db, idemsql.WithTable(do.Table))
	must(t, err)
	must(t, store.Migrate(t.Context()))
	db.MustExec("CREATE TABLE " + do.Table + "_effects (id TEXT)")
	t.Cleanup(func() {
		for _, suffix := range []string{"", "_version", "_effects"} {
			db.MustExec("DROP TABLE " + do.Table + suffix)
		}
		_ = db.Close()
	})
	return db
}

// count says how many messages had one effect, and how many more.
func count(t *testing.T, db *sqlx.DB, do task) (once, more int) {
	t.Helper()
	var effects []int
	must(t, db.Select(&effects, "SELECT count(*) FROM "+do.Table+"_effects GROUP BY id"))
	for _, e := range effects {
		if e == 1 {
			once++
		} else {
			more++
		}
	}
	return once, more
}
