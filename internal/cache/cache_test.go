package cache_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem/internal/cache"
)

func TestEntryEndsAtItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := cache.New[string, int](10)
		c.Put("a", 1, time.Now().Add(time.Minute))
		time.Sleep(time.Minute - time.Nanosecond)
		if v, ok := c.Get("a"); !ok || v != 1 {
			t.Fatal(v, ok)
		}
		time.Sleep(time.Nanosecond)
		if v, ok := c.Get("a"); ok {
			t.Fatal(v)
		}
	})
}

func TestFullCacheKeepsWhatIsRead(t *testing.T) {
	t.Parallel()
	c, later := cache.New[int, int](100), time.Now().Add(time.Hour)
	for i := range 10_000 {
		c.Put(i, i, later)
		if v, ok := c.Get(0); !ok || v != 0 {
			t.Fatalf("the entry that is read all the time went at %d", i)
		}
		if c.Len() > 100 {
			t.Fatal(c.Len(), "entries")
		}
	}
}

func TestEndedEntriesGoBeforeLiveOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := cache.New[int, int](4)
		for i := range 4 {
			until := time.Now().Add(time.Hour)
			if i == 2 {
				until = time.Now().Add(time.Second)
			}
			c.Put(i, i, until)
			c.Get(i)
		}
		time.Sleep(time.Minute)
		c.Put(9, 9, time.Now().Add(time.Hour))
		for _, i := range []int{0, 1, 3, 9} {
			if _, ok := c.Get(i); !ok {
				t.Error(i, "went before the one that had ended")
			}
		}
	})
}

func TestDeletedEntryIsGoneAndItsSlotUsedAgain(t *testing.T) {
	t.Parallel()
	c, later := cache.New[int, int](2), time.Now().Add(time.Hour)
	c.Put(1, 1, later)
	c.Put(2, 2, later)
	c.Delete(1)
	c.Delete(7)
	if _, ok := c.Get(1); ok || c.Len() != 1 {
		t.Fatal("still there")
	}
	c.Put(2, 20, later)
	c.Put(3, 3, later)
	if v, _ := c.Get(2); v != 20 || c.Len() != 2 {
		t.Fatal(v, c.Len())
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	c := cache.New[int, int](50)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5000 {
				k := rand.N(100)
				switch rand.N(3) {
				case 0:
					c.Put(k, k, time.Now().Add(time.Hour))
				case 1:
					c.Delete(k)
				default:
					if v, ok := c.Get(k); ok && v != k {
						t.Error(k, v)
					}
				}
			}
		})
	}
	wg.Wait()
	if c.Len() > 50 {
		t.Fatal(c.Len())
	}
}
