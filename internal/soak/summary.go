package main

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"
)

// maxShown is how many violations of a store are printed.
const maxShown = 20

// String is the summary for a person.
func (s *summary) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	line(w, "answers", "calls", "fresh", "replayed", "failed", "in progress", "unknown", "store failed", "cancelled", "panicked")
	for _, one := range s.stores {
		n := &one.answers
		counts(w, one.name, &n.calls, &n.fresh, &n.replayed, &n.failed, &n.inProgress, &n.unknown, &n.store, &n.cancelled, &n.panicked)
	}
	_ = w.Flush() // every table has its own widths
	line(w, "faults", "failed before", "reply lost", "sent twice", "delayed", "cut", "stalled", "outages")
	for _, one := range s.stores {
		f := &one.faults
		counts(w, one.name, &f.before, &f.lost, &f.twice, &f.delayed, &f.cuts, &f.stalls, &f.outages)
	}
	_ = w.Flush()
	line(w, "ledger", "runs", "of them again", "effects", "stale effects refused", "outcomes audited", "lost by a failover", "violations")
	for _, one := range s.stores {
		line(w, one.name, one.runs.Load(), one.again.Load(), one.effects, one.stale, one.audited.Load(), one.excused, len(one.wrong))
	}
	_ = w.Flush()
	var calls, faults, effects int64
	for _, one := range s.stores {
		calls += one.answers.calls.Load()
		faults += one.faults.total()
		effects += int64(one.effects)
	}
	_, _ = fmt.Fprintf(&b, "\nseed %d, %v, %d stores: %d calls, %d faults, %d effects, %d violations\n",
		s.seed, s.length.Round(time.Second), len(s.stores), calls, faults, effects, s.violations())
	_, _ = fmt.Fprintf(&b, "heap: %d KiB before, %d KiB in use at the peak, %d KiB after; goroutines: %d before, %d at the peak, %d after\n",
		s.heapBefore>>10, s.peakHeap>>10, s.heapAfter>>10, s.goroutinesBefore, s.goroutines, s.goroutinesAfter)
	for _, text := range s.other {
		b.WriteString("VIOLATION: " + text + "\n")
	}
	for _, one := range s.stores {
		for _, text := range one.wrong[:min(len(one.wrong), maxShown)] {
			b.WriteString("VIOLATION: " + one.name + ": " + text + "\n")
		}
	}
	return b.String()
}

// line writes one row of a table.
func line(w io.Writer, cells ...any) {
	for _, c := range cells {
		_, _ = fmt.Fprint(w, c, "\t")
	}
	_, _ = fmt.Fprintln(w)
}

func counts(w io.Writer, title string, counters ...*atomic.Int64) {
	cells := append(make([]any, 0, 1+len(counters)), title)
	for _, c := range counters {
		cells = append(cells, c.Load())
	}
	line(w, cells...)
}
