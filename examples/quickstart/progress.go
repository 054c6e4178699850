package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/idem-go/idem"
)

// outcomes in the order of the summary.
var outcomes = []string{"ran", "replayed", "refused", "failed", "unknown"}

// progress prints a line for each order, and on a terminal a bar below them.
type progress struct {
	out         *os.File
	terminal    bool
	done, total int
	counts      map[string]int
}

func newProgress(out *os.File, total int) *progress {
	info, err := out.Stat()
	return &progress{
		out: out, total: total, counts: map[string]int{},
		terminal: err == nil && info.Mode()&os.ModeCharDevice != 0,
	}
}

func (p *progress) begin(o order) {
	if !p.terminal {
		return
	}
	const width = 30
	full := width * p.done / max(p.total, 1)
	_, _ = fmt.Fprintf(p.out, "\r\033[K[%s%s] %d/%d %s", strings.Repeat("#", full), strings.Repeat(".", width-full), p.done, p.total, o.ID)
}

func (p *progress) end(o order, res idem.Result[receipt], err error) {
	what, detail := outcome(res, err)
	p.counts[what]++
	p.done++
	if p.terminal {
		_, _ = fmt.Fprint(p.out, "\r\033[K")
	}
	_, _ = fmt.Fprintf(p.out, "%-9s %-8s %s\n", o.ID, what, detail)
}

// outcome says in a word what became of an order.
func outcome(res idem.Result[receipt], err error) (what, detail string) {
	_, replayed := errors.AsType[*idem.ReplayedError](err)
	switch {
	case err == nil && res.Replayed:
		return "replayed", res.Value.Charge
	case err == nil:
		return "ran", res.Value.Charge
	case errors.Is(err, idem.ErrMismatch):
		return "refused", err.Error()
	case errors.Is(err, idem.ErrOutcomeUnknown):
		return "unknown", err.Error()
	case replayed:
		return "failed", err.Error() + " (replayed)"
	}
	return "failed", err.Error()
}

func (p *progress) summary() {
	parts := make([]string, 0, len(outcomes))
	for _, o := range outcomes {
		parts = append(parts, fmt.Sprintf("%d %s", p.counts[o], o))
	}
	_, _ = fmt.Fprintf(p.out, "\n%d orders: %s\n", p.done, strings.Join(parts, ", "))
}
