package idemmemory_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem/driver"
)

func TestFullStoreDropsInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, 5)
		s.claim("completed first")
		s.complete("completed first")
		s.claim("completed last")
		s.complete("completed last")
		s.claim("expired")
		s.completeFor("expired", time.Second, time.Hour)
		s.claim("past")
		s.completeFor("past", time.Second, 0)
		s.claim("released")
		s.release("released")
		time.Sleep(2 * time.Second)

		for i, want := range []string{"past", "released", "expired", "completed first", "completed last"} {
			if want != "past" && !s.has(want) {
				t.Errorf("%q is gone too early", want)
			}
			s.claim(fmt.Sprint("new", i))
			if s.has(want) {
				t.Errorf("%q is still there", want)
			}
		}
		if !s.busy("one too many") {
			t.Error("a store full of live claims takes another one")
		}
	})
}

func TestFullStoreKeepsWhatCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, 4)
		short := guard("guard with a retention")
		short.Retention = driver.FenceMemory
		s.claimWith(guard("completed guard"))
		s.complete("completed guard")
		s.claimWith(guard("lapsed guard"))
		s.claimWith(short)
		s.claim("abandoned lease")

		time.Sleep(2 * lease)
		if !s.busy("new") {
			t.Error("a lapsed lease or guard made room")
		}
		time.Sleep(driver.FenceMemory)
		for i, gone := range []string{"guard with a retention", "abandoned lease"} {
			s.claim(fmt.Sprint("new", i))
			if s.has(gone) {
				t.Errorf("%q is past its time and stays", gone)
			}
		}
		if !s.busy("third") {
			t.Error("a guard that is kept for ever made room")
		}
		if !s.has("lapsed guard") {
			t.Error("the uncertain guard is gone")
		}
	})
}

func TestNewClaimsDropWhatIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, 1000)
		for i := range 100 {
			id := fmt.Sprint("old", i)
			s.claim(id)
			s.completeFor(id, time.Second, 0)
		}
		time.Sleep(time.Hour)
		for i := range 100 {
			s.claim(fmt.Sprint("new", i))
		}
		purged, err := s.Purge(t.Context(), driver.PurgeParams{Limit: 1000})
		if err != nil || purged.Purged > 1 {
			t.Errorf("%d records were left to purge (%v)", purged.Purged, err)
		}
	})
}

func TestOldestCompletedGoesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, 3)
		for _, id := range []string{"a", "b", "c"} {
			s.claim(id)
			s.completeFor(id, 24*time.Hour, 0)
		}
		time.Sleep(time.Hour) // the deadlines of the leases pass, the order stays
		if _, err := s.Purge(t.Context(), driver.PurgeParams{Limit: 10}); err != nil {
			t.Fatal(err)
		}
		s.claim("d")
		if s.has("a") || !s.has("b") || !s.has("c") {
			t.Error("not the oldest one was dropped")
		}
	})
}

func TestListRefusesAForeignCursor(t *testing.T) {
	t.Parallel()
	s := setup(t, 10)
	for _, after := range []string{"x", "5:abc", "-1:a:b", "3:abc", "99999999999999999999:a:b"} {
		if _, err := s.List(t.Context(), driver.ListParams{After: after, Limit: 1}); err == nil {
			t.Errorf("After %q is taken", after)
		}
	}
}

func BenchmarkClaimAndComplete(b *testing.B) {
	s := setup(b, 100_000)
	ids := make([]string, b.N)
	for i := range ids {
		ids[i] = fmt.Sprint("key", i)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		s.claim(ids[i])
		s.complete(ids[i])
	}
}

func BenchmarkReplay(b *testing.B) {
	s := setup(b, 10)
	s.claim("key")
	s.complete("key")
	b.ReportAllocs()
	for b.Loop() {
		s.claim("key")
	}
}
