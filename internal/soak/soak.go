package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"
)

// config is what a run needs.
type config struct {
	length   time.Duration
	seed     uint64
	open     func(context.Context) ([]*backend, error)
	progress io.Writer
}

// summary is what a run found.
type summary struct {
	seed   uint64
	length time.Duration
	stores []*soak
	other  []string // violations that belong to no store

	peakHeap                          uint64 // bytes in use
	heapBefore, heapAfter             uint64
	goroutines                        int // peak
	goroutinesBefore, goroutinesAfter int
}

// settleTime is how long goroutines of closed pools and clients may take to end.
const settleTime = 15 * time.Second

// heapLimit is how much memory may be left when all is closed: that of pools and caches.
const heapLimit = 64 << 20

// run soaks all stores side by side.
func run(ctx context.Context, c config) (*summary, error) {
	began := time.Now()
	s := &summary{seed: c.seed, heapBefore: heap(), goroutinesBefore: runtime.NumGoroutine()}
	list, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	_, _ = fmt.Fprintf(c.progress, "soak: %v, seed %d\n", c.length, c.seed)
	ctx, cancel := context.WithTimeout(ctx, c.length)
	defer cancel()
	var wg sync.WaitGroup
	for i, b := range list {
		actor := uint64(i)
		one, err := newSoak(b, c.seed+100*actor)
		if err != nil {
			s.other = append(s.other, err.Error())
			continue
		}
		s.stores = append(s.stores, one)
		wg.Go(func() { one.work(ctx) })
		wg.Go(func() { one.faults.fail(ctx, newRand(c.seed, actor)) })
		if b.proxy != nil {
			wg.Go(func() { one.faults.disturb(ctx, b.proxy, newRand(c.seed, actor)) })
		}
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watch(ctx, c.progress)
	}()
	wg.Wait()
	cancel()
	<-watched
	s.length = time.Since(began)
	for _, b := range list {
		if err := b.close(); err != nil {
			s.other = append(s.other, fmt.Sprintf("closing %s: %v", b.name, err))
		}
	}
	for _, one := range s.stores {
		one.sides, one.auditor = nil, nil
	}
	s.settle()
	return s, nil
}

// watch measures once a second and tells once a minute.
func (s *summary) watch(ctx context.Context, progress io.Writer) {
	for i := 1; pause(ctx, time.Second); i++ {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		s.peakHeap = max(s.peakHeap, m.HeapInuse)
		s.goroutines = max(s.goroutines, runtime.NumGoroutine())
		if i%60 == 0 {
			var calls, faults int64
			for _, one := range s.stores {
				calls += one.answers.calls.Load()
				faults += one.faults.total()
			}
			_, _ = fmt.Fprintf(progress, "soak: %d min: %d calls, %d faults, %d violations, heap %d MiB, %d goroutines\n",
				i/60, calls, faults, s.violations(), m.HeapInuse>>20, runtime.NumGoroutine())
		}
	}
}

// settle waits until what the run started has ended.
func (s *summary) settle() {
	for end := time.Now().Add(settleTime); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if s.goroutinesAfter = runtime.NumGoroutine(); s.goroutinesAfter <= s.goroutinesBefore {
			break
		}
	}
	if s.heapAfter = heap(); s.heapAfter > s.heapBefore+heapLimit {
		s.other = append(s.other, fmt.Sprintf("%d MiB of memory are left in use", s.heapAfter>>20))
	}
	if s.goroutinesAfter > s.goroutinesBefore {
		stacks := make([]byte, 1<<20)
		s.other = append(s.other, fmt.Sprintf("%d goroutines are left of %d:\n%s", s.goroutinesAfter, s.goroutinesBefore,
			stacks[:runtime.Stack(stacks, true)]))
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // pools keep what they hold for one more
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func (s *summary) violations() int {
	n := len(s.other)
	for _, one := range s.stores {
		n += one.violations()
	}
	return n
}
