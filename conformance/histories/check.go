package histories

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/idem-go/idem/conformance"
	"github.com/idem-go/idem/driver"
)

// Flags of go test.
var (
	countFlag = flag.Int("histories.count", 0, "how many histories to check; 0: as many as the test says")
	seedFlag  = flag.Uint64("histories.seed", 0, "the `seed` of the first history; 0: a new one")
	htmlFlag  = flag.String("histories.html", "", "the `folder` to draw histories in that break the contract")
)

// The defaults of [Options].
const (
	DefaultHistories = 200
	DefaultHandles   = 3
	DefaultParallel  = 16
)

// Options say how much to check. Zero means the default.
type Options struct {
	Histories int // how many; default [DefaultHistories], or go test's flag -histories.count
	Handles   int // of the store; default [DefaultHandles]
	Parallel  int // how many histories at a time; default [DefaultParallel]
}

// maxShown is how many broken histories are printed.
const maxShown = 3

// Check fails the test if the harness's driver breaks the contract in a random
// history. Of the harness it uses Open and Peer. The histories are keys of one
// store, and run in real time.
func Check(t *testing.T, h conformance.Harness, o Options) {
	t.Helper()
	d := h.Open(t)
	handles := []driver.Driver{d}
	for len(handles) < cmp.Or(o.Handles, DefaultHandles) {
		if h.Peer != nil {
			handles = append(handles, h.Peer(t, d))
		} else {
			handles = append(handles, d)
		}
	}
	t.Run("step by step", func(t *testing.T) { checkSteps(t, handles) })
	t.Run("at once", func(t *testing.T) { checkAtOnce(t, handles, o) })
}

// totals are what the histories had in them.
type totals struct {
	mu                              sync.Mutex
	histories, calls, unknown       int
	takeovers, lost, broken, unsure int
	shown                           []string
}

func checkAtOnce(t *testing.T, handles []driver.Driver, o Options) {
	t.Helper()
	s := search{
		seed:     cmp.Or(*seedFlag, rand.Uint64()),
		count:    cmp.Or(*countFlag, o.Histories, DefaultHistories),
		parallel: cmp.Or(o.Parallel, DefaultParallel),
		enough:   maxShown, html: *htmlFlag,
	}
	found := s.explore(t, handles)
	for _, text := range found.shown {
		t.Error(text)
	}
	t.Log(found.summary(s.seed))
	if found.unsure > 0 {
		t.Errorf("for %d histories no order was found in time, nor that there is none", found.unsure)
	}
}

func (n *totals) summary(seed uint64) string {
	return fmt.Sprintf("%d histories from seed %d: %d calls, %d of them without an answer, %d takeovers, %d stale calls, "+
		"%d histories break the contract", n.histories, seed, n.calls, n.unknown, n.takeovers, n.lost, n.broken)
}

// search says which histories to check.
type search struct {
	seed            uint64 // of the first one
	count, parallel int
	enough          int    // broken ones
	html            string // a folder; empty: none is drawn
}

// explore checks histories until there are enough, or enough are broken.
func (s search) explore(t testing.TB, handles []driver.Driver) *totals {
	t.Helper()
	run := newRun()
	caps := handles[0].Capabilities()
	m := model{precision: caps.ClockPrecision}
	n := &totals{}
	seeds := make(chan uint64)
	var wg sync.WaitGroup
	for range s.parallel {
		wg.Go(func() {
			for seed := range seeds {
				one := newHistory(seed, fmt.Sprintf("%s-%d", run, seed))
				one.play(t.Context(), handles, caps)
				n.add(one, one.check(m), s.html)
			}
		})
	}
	for i := range s.count {
		if n.stopped(s.enough) {
			break
		}
		seeds <- s.seed + uint64(i)
	}
	close(seeds)
	wg.Wait()
	return n
}

// newRun begins the keys of one run, so that a store may be used twice.
func newRun() string { return strconv.FormatUint(rand.Uint64(), 36) }

func (n *totals) stopped(enough int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.broken+n.unsure >= enough
}

func (n *totals) add(h *history, o order, html string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.histories++
	n.calls += len(h.calls)
	for _, a := range h.answer {
		switch {
		case a.unknown():
			n.unknown++
		case a.lost:
			n.lost++
		case a.claim.TookOver:
			n.takeovers++
		}
	}
	switch o.result {
	case porcupine.Ok:
		return
	case porcupine.Unknown:
		n.unsure++
		return
	case porcupine.Illegal:
	}
	n.broken++
	text := "a history that no order explains: " + h.timeline(o)
	if html != "" {
		file := filepath.Join(html, fmt.Sprintf("history-%d.html", h.seed))
		text += "\ndrawn in " + file
		if err := porcupine.VisualizePath(o.model, o.info, file); err != nil {
			text += errors.Join(errors.New(", no"), err).Error()
		}
	}
	n.shown = append(n.shown, text)
}
