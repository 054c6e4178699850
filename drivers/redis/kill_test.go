package idemredis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/idem-go/idem"
)

// size makes a heavy test larger by the variable IDEM_TEST_SIZE: 10 is a long run.
func size() int {
	n, err := strconv.Atoi(os.Getenv("IDEM_TEST_SIZE"))
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// ledger counts what the effects of each key did, and what its callers were told.
type ledger struct {
	mu      sync.Mutex
	calls   int
	effects map[string]int
	told    map[string]map[string]bool
}

func (l *ledger) effect(key string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.effects[key]++
	return fmt.Sprint(key, " #", l.effects[key])
}

func (l *ledger) answer(key, value string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	if l.told[key] == nil {
		l.told[key] = make(map[string]bool)
	}
	l.told[key][value] = true
}

// load is callers that call keys again and again while disturb does its worst.
type load struct {
	callers int
	op      *idem.Operation
	disturb func()
}

// keysARound are called by every caller, in an order of its own, before the next ones.
const keysARound = 100

// run returns what happened when the disturbance is over, and everything is settled.
func (l load) run(t *testing.T) *ledger {
	t.Helper()
	book := &ledger{effects: make(map[string]int), told: make(map[string]map[string]bool)}
	over := make(chan struct{})
	go func() {
		defer close(over)
		l.disturb()
	}()
	parallel(l.callers, func(caller int) {
		r := rand.New(rand.NewPCG(uint64(caller), 7))
		for round := 0; ; round++ {
			for _, i := range r.Perm(keysARound) {
				l.settle(t, book, fmt.Sprint("key ", round, ".", i))
			}
			select {
			case <-over:
				return
			default:
			}
		}
	})
	return book
}

// settle calls until there is a final answer.
func (l load) settle(t *testing.T, book *ledger, key string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		value, err := idem.Execute(ctx, key, func(context.Context) (string, error) {
			return book.effect(key), nil
		}, idem.On(l.op))
		cancel()
		e, typed := errors.AsType[*idem.Error](err)
		switch {
		case err == nil:
			book.answer(key, value)
			return
		case !typed:
			t.Errorf("%s: %v, which has no type", key, err)
			return
		case errors.Is(err, idem.ErrOutcomeUnknown) && e.Final:
			return
		case time.Now().After(deadline):
			t.Errorf("%s: still %v", key, err)
			return
		}
		time.Sleep(min(e.RetryAfter, 50*time.Millisecond))
	}
}

// check wants no answer from nowhere, and at most limit effects a key; 0: any number.
func (b *ledger) check(t *testing.T, limit int) {
	t.Helper()
	again, answers := 0, 0
	for key, n := range b.effects {
		again += n - 1
		if limit > 0 && n > limit {
			t.Errorf("%s has %d effects", key, n)
		}
	}
	for key, told := range b.told {
		for value := range told {
			answers++
			known := false
			for k := range b.effects[key] {
				known = known || value == fmt.Sprint(key, " #", k+1)
			}
			if !known {
				t.Errorf("%s was answered %q, from nowhere", key, value)
			}
		}
	}
	t.Logf("%s: %d calls of %d keys, %d answers, %d effects more than one a key", t.Name(), b.calls, len(b.effects), answers, again)
}

// A server that keeps what it acknowledges is killed and restarted under load.
func TestEffectsWhileTheServerIsKilled(t *testing.T) {
	t.Parallel()
	for _, g := range []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce} {
		t.Run(g.String(), func(t *testing.T) {
			t.Parallel()
			server := spawn(t, durable...)
			o := server.options()
			o.ConnWriteTimeout = 2 * time.Second
			client, err := rueidis.NewClient(o)
			must(t, err)
			t.Cleanup(client.Close)
			s := setupOn(t, client)
			op, err := idem.NewOperation("payments", s.Store, g, idem.WithLeaseTTL(2*time.Second), idem.WithWait(10*time.Second))
			must(t, err)
			book := load{callers: 16, op: op, disturb: func() {
				for range 3 * size() {
					time.Sleep(100 * time.Millisecond)
					server.kill()
					server.start()
				}
			}}.run(t)
			book.check(t, limitOf(g))
		})
	}
}

// limitOf is how many effects a key may have.
func limitOf(g idem.Guarantee) int {
	if g == idem.AtMostOnce {
		return 1
	}
	return 0
}
