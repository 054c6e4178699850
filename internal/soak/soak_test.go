package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	"github.com/idem-go/idem/internal/testenv"
)

const shortly = 4 * time.Second

//nolint:paralleltest // it counts the goroutines of the process
func TestStoresKeepTheirWordUnderFaults(t *testing.T) {
	for _, name := range []testenv.Name{
		testenv.Postgres, testenv.MySQL, testenv.MariaDB, testenv.Redis, testenv.RedisCluster, testenv.RedisSentinel,
	} {
		t.Run(string(name), func(t *testing.T) { testenv.Backend(t, name) })
	}
	s, err := run(t.Context(), config{length: shortly, seed: 7, open: backends, progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(s)
	if s.violations() > 0 {
		t.Error("there are violations")
	}
	var injected int64
	for _, one := range s.stores {
		injected += one.faults.total()
		if one.effects == 0 {
			t.Errorf("%s: nothing happened", one.name)
		}
	}
	if injected == 0 {
		t.Error("there was no fault")
	}
}

// forgetful says that it has completed, and has not.
type forgetful struct{ driver.Driver }

func (forgetful) Complete(context.Context, driver.CompleteParams) (driver.CompleteResult, error) {
	return driver.CompleteResult{CompletedAt: time.Now(), LifeLeft: time.Minute}, nil
}

// generous grants a key to one of two at a time.
type generous struct{ driver.Driver }

func half(k driver.Key, t driver.Token) driver.Key {
	k.ID += string('a' + rune(t[0]%2))
	return k
}

func (g generous) Claim(ctx context.Context, p driver.ClaimParams) (driver.ClaimResult, error) {
	p.Key = half(p.Key, p.Token)
	return g.Driver.Claim(ctx, p)
}

func (g generous) Complete(ctx context.Context, p driver.CompleteParams) (driver.CompleteResult, error) {
	p.Key = half(p.Key, p.Token)
	return g.Driver.Complete(ctx, p)
}

func (g generous) Release(ctx context.Context, p driver.ReleaseParams) (driver.ReleaseResult, error) {
	p.Key = half(p.Key, p.Token)
	return g.Driver.Release(ctx, p)
}

//nolint:paralleltest // it counts the goroutines of the process
func TestStoreThatBreaksItsWordIsFound(t *testing.T) {
	for name, broken := range map[string]func(driver.Driver) driver.Driver{
		"forgetful": func(d driver.Driver) driver.Driver { return forgetful{d} },
		"generous":  func(d driver.Driver) driver.Driver { return generous{d} },
	} {
		open := func(context.Context) ([]*backend, error) {
			store, err := idemmemory.New()
			d := broken(store)
			return []*backend{{name: name, handles: []driver.Driver{d, d, d}, clean: d}}, err
		}
		s, err := run(t.Context(), config{length: time.Second, seed: 7, open: open, progress: t.Output()})
		if err != nil {
			t.Fatal(err)
		}
		if s.violations() == 0 || !strings.Contains(s.String(), "VIOLATION: "+name) {
			t.Errorf("%s: nothing was found:\n%v", name, s)
		}
	}
}

func TestLedgerKnowsWhatMustNotHappen(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for what, e := range map[string]struct {
		happens func(l *ledger)
		wrong   string
	}{
		"a run and its outcome": {happens: func(l *ledger) {
			l.leave(l.enter(t.Context(), "k", idem.AtMostOnce, 1))
			l.recorded("k", idem.AtMostOnce, "v")
			l.recorded("k", idem.AtMostOnce, "v")
		}},
		"a guard that runs twice": {wrong: "a guard ran 2 times", happens: func(l *ledger) {
			l.leave(l.enter(t.Context(), "k", idem.AtMostOnce, 1))
			l.leave(l.enter(t.Context(), "k", idem.AtMostOnce, 2))
		}},
		"a run after the outcome": {wrong: "ran again", happens: func(l *ledger) {
			l.leave(l.enter(t.Context(), "k", idem.AtLeastOnce, 1))
			l.recorded("k", idem.AtLeastOnce, "v")
			l.leave(l.enter(t.Context(), "k", idem.AtLeastOnce, 2))
		}},
		"one fence for two": {wrong: "the fence 1", happens: func(l *ledger) {
			l.leave(l.enter(t.Context(), "k", idem.AtLeastOnce, 1))
			l.leave(l.enter(t.Context(), "k", idem.AtLeastOnce, 1))
		}},
		"two outcomes": {wrong: "outcomes", happens: func(l *ledger) {
			l.leave(l.enter(t.Context(), "k", idem.AtLeastOnce, 1))
			l.recorded("k", idem.AtLeastOnce, "v")
			l.recorded("k", idem.AtLeastOnce, "w")
		}},
		"an outcome of nothing": {wrong: "never ran", happens: func(l *ledger) {
			l.recorded("k", idem.AtLeastOnce, "v")
		}},
		"an owner beside its successor": {wrong: "beside its successor", happens: func(l *ledger) {
			l.enter(t.Context(), "k", idem.AtLeastOnce, 1)
			l.enter(t.Context(), "k", idem.AtLeastOnce, 2)
			time.Sleep(patience + 100*time.Millisecond)
		}},
		"an owner that knows of its successor": {happens: func(l *ledger) {
			l.enter(ended, "k", idem.AtLeastOnce, 1)
			l.enter(t.Context(), "k", idem.AtLeastOnce, 2)
			time.Sleep(patience + 100*time.Millisecond)
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := newLedger()
			e.happens(l)
			l.mu.Lock()
			defer l.mu.Unlock()
			text := strings.Join(l.wrong, "\n")
			if (e.wrong == "") != (text == "") || !strings.Contains(text, e.wrong) {
				t.Errorf("the ledger says %q, want %q", text, e.wrong)
			}
		})
	}
}

func TestStaleEffectIsRefused(t *testing.T) {
	t.Parallel()
	l := newLedger()
	stale := l.enter(t.Context(), "k", idem.AtLeastOnce, 1)
	l.leave(stale)
	l.effect(l.enter(t.Context(), "k", idem.AtLeastOnce, 2))
	l.effect(stale)
	if l.effects != 1 || l.stale != 1 {
		t.Errorf("%d effects, %d refused", l.effects, l.stale)
	}
}

func TestViolationsOfAFailoverAreCountedApart(t *testing.T) {
	t.Parallel()
	l := newLedger()
	l.violationf("before")
	since := l.violations()
	l.violationf("lost by the server")
	l.excuse(since)
	if l.violations() != 1 || l.excused != 1 {
		t.Errorf("%d violations, %d excused", l.violations(), l.excused)
	}
}
