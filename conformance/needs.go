package conformance

import (
	"strings"

	"github.com/idem-go/idem/driver"
)

// need is something that a case cannot do without.
type need struct {
	what string
	met  func(s *suite) bool
}

type needs []need

// String lists the needs for [Case].
func (n needs) String() string {
	words := make([]string, len(n))
	for i := range n {
		words[i] = n[i].what
	}
	return strings.Join(words, ", ")
}

// missing is the first need that is not met; empty: all are.
func (n needs) missing(s *suite) string {
	for _, one := range n {
		if !one.met(s) {
			return one.what
		}
	}
	return ""
}

var (
	leases      = declares(driver.AtLeastOnce)
	guards      = declares(driver.AtMostOnce)
	inboxes     = declares(driver.ExactlyOnce)
	noInboxes   = not(inboxes)
	tombstones  = feature(driver.FeatureTombstone, "FeatureTombstone")
	reconciling = feature(driver.FeatureReconcile, "FeatureReconcile")

	inspector      = ability[driver.Inspector]("an Inspector")
	lister         = ability[driver.Lister]("a Lister")
	resolver       = ability[driver.Resolver]("a Resolver")
	purger         = ability[driver.Purger]("a Purger")
	watcher        = ability[driver.Watcher]("a Watcher")
	classifier     = ability[driver.Classifier]("a Classifier")
	overlapper     = ability[driver.Overlapper]("an Overlapper")
	batchClaimer   = ability[driver.BatchClaimer]("a BatchClaimer")
	batchCompleter = ability[driver.BatchCompleter]("a BatchCompleter")
	batchRenewer   = ability[driver.BatchRenewer]("a BatchRenewer")

	leasesOrGuards = need{"AtLeastOnce or AtMostOnce", func(s *suite) bool {
		return leases.met(s) || guards.met(s)
	}}
	freeTime = need{"time that costs nothing (Bubble or Advance)", func(s *suite) bool {
		return s.h.timeIsFree()
	}}
	interrupts = need{"Interrupt", func(s *suite) bool { return s.h.Interrupt != nil }}
	limited    = need{"a MaxOutcome", func(s *suite) bool { return s.caps.MaxOutcome > 0 }}
)

func declares(g driver.Guarantee) need {
	return need{g.String(), func(s *suite) bool { return s.caps.Guarantees.Has(g) }}
}

func feature(f driver.Features, name string) need {
	return need{name, func(s *suite) bool { return s.caps.Features.Has(f) }}
}

func ability[T any](name string) need {
	return need{name, func(s *suite) bool {
		_, ok := driver.As[T](s.d)
		return ok
	}}
}

func not(n need) need {
	return need{"no " + n.what, func(s *suite) bool { return !n.met(s) }}
}
