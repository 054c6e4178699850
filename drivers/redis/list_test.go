package idemredis_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/redis/rueidis"

	"github.com/idem-go/idem/driver"
	idemredis "github.com/idem-go/idem/drivers/redis"
)

// Each record at least once, on every master, while others come and go.
func TestListingWhileRecordsComeAndGo(t *testing.T) {
	t.Parallel()
	for name, options := range onOneAndMany {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setupOn(t, dial(t, options(t)))
			const n = 500
			fill := func(name string) {
				claims := make([]driver.ClaimParams, n)
				for i := range claims {
					claims[i] = claimOf(fmt.Sprint(name, i))
				}
				_, err := s.ClaimBatch(t.Context(), driver.ClaimBatchParams{Claims: claims})
				must(t, err)
			}
			fill("stays")
			seen := make(map[string]bool)
			pages := 0
			must(t, s.list(driver.ListParams{Scope: "payments", Limit: 7}, func(r driver.Record) {
				if seen[r.Key.ID] = true; len(seen)%100 == 0 && pages < 3 {
					pages++
					fill(fmt.Sprint("new", pages, " "))
				}
			}))
			for i := range n {
				if !seen[fmt.Sprint("stays", i)] {
					t.Errorf("record %d is not listed", i)
				}
			}
		})
	}
}

// What is not a record of the store is left out, also if its name begins alike.
func TestListingLeavesOutWhatIsNoRecord(t *testing.T) {
	t.Parallel()
	client := dial(t, standalone(t))
	prefix := newPrefix() + `*?[a]\`
	s, err := idemredis.New(client, idemredis.WithPrefix(prefix))
	must(t, err)
	b := &bundle{Store: s, t: t, client: client, prefix: prefix}
	b.mustClaim(claimOf("mine"), driver.DecisionClaimed)
	b.write(key("corrupt"), []byte("corrupt"))
	do(t, client, "RPUSH", b.physical(key("a list")), "x")
	for _, name := range []string{"", "x", "8", "8:", "8:payments", "8:payments:", "08:payments:x", "9:payments:x", "0::x", "-1:x:y"} {
		do(t, client, "SET", prefix+name, "x")
	}
	for _, scope := range []string{"", "payments"} {
		var ids []string
		must(t, b.list(driver.ListParams{Scope: scope, Limit: 100}, func(r driver.Record) { ids = append(ids, r.Key.ID) }))
		if len(ids) != 1 || ids[0] != "mine" {
			t.Errorf("scope %q lists %q, want the record alone", scope, ids)
		}
	}
}

func TestAForeignCursorIsRefused(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for _, after := range []string{"x", "!", "e30x", "eyJkIjotMX0"} {
		if _, err := s.List(t.Context(), driver.ListParams{Limit: 1, After: after}); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("After %q returned %v, want ErrInvalid", after, err)
		}
	}
}

// A master that restarts scans in another order, so the listing begins again.
func TestAListingBeginsAgainAfterARestart(t *testing.T) {
	t.Parallel()
	server := spawn(t, durable...)
	s := setupOn(t, server.dial())
	const n = 300
	claims := make([]driver.ClaimParams, n)
	for i := range claims {
		claims[i] = claimOf(strconv.Itoa(i))
	}
	_, err := s.ClaimBatch(t.Context(), driver.ClaimBatchParams{Claims: claims})
	must(t, err)
	first, err := s.List(t.Context(), driver.ListParams{Limit: 200})
	must(t, err)
	server.kill()
	server.start()
	s = &bundle{Store: reopened(t, server.dial(), s.prefix), t: t}
	seen := make(map[driver.Key]bool)
	must(t, s.list(driver.ListParams{Limit: 200, After: first.Next}, func(r driver.Record) { seen[r.Key] = true }))
	if len(seen) != n {
		t.Errorf("%d records are listed after the restart, want %d", len(seen), n)
	}
}

// reopened is a store with a prefix that another one has.
func reopened(t testing.TB, c rueidis.Client, prefix string) *idemredis.Store {
	t.Helper()
	s, err := idemredis.New(c, idemredis.WithPrefix(prefix))
	must(t, err)
	return s
}
