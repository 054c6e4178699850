package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/idem-go/idem/driver"
)

// Harness says how to test one driver. Its functions are called concurrently,
// and get a [testing.TB] of their own for each case: with Cleanup, Context and
// TempDir, but without Run and Parallel.
type Harness struct {
	// Open returns a driver on empty data that no other call's driver sees.
	// Required.
	Open func(t testing.TB) driver.Driver
	// Peer returns another handle on the data of d, as another process would
	// open it. Required if the driver is Shared; default: d itself.
	Peer func(t testing.TB, d driver.Driver) driver.Driver

	// Effect writes one effect with this id in the transaction that ctx
	// carries, and Effects counts the committed ones. Both are required if the
	// driver declares ExactlyOnce. [DriverFrom] tells them the driver.
	Effect  func(ctx context.Context, id string) error
	Effects func(ctx context.Context, id string) (int, error)

	// Advance makes d pass on the backend's clock. Default: it sleeps, and
	// cases that need minutes are skipped outside a bubble.
	Advance func(t testing.TB, d time.Duration)
	// Interrupt cuts the connections of d, as a failing network would.
	// Optional.
	Interrupt func(t testing.TB, d driver.Driver)
	// Bubble runs each case in a bubble of testing/synctest, where time costs
	// nothing. The driver must not leave the process. Default: false.
	Bubble bool

	// Name heads the driver's column in the matrix that go test's flag
	// -conformance.report writes. Runs with one name share a column, in which
	// the worst of each case counts. Default: the test's name.
	Name string
	// Report is such a matrix, which the run then wants to say what it finds:
	// a driver that keeps one in its repository sees when it is out of date.
	// It needs a Name. Default: none.
	Report string

	// KnownFailures has a reason for each case that is known to fail, by name.
	// These run all the same, and must fail.
	KnownFailures map[string]string
}

type driverKey struct{}

// DriverFrom returns the driver under test from a context that
// [Harness].Effect or Effects was called with.
func DriverFrom(ctx context.Context) (driver.Driver, bool) {
	d, ok := ctx.Value(driverKey{}).(driver.Driver)
	return d, ok
}

// timeIsFree reports whether a case may let minutes pass.
func (h Harness) timeIsFree() bool { return h.Bubble || h.Advance != nil }

// Case describes one case of the suite.
type Case struct {
	Name  string // "group/rule-in-words"; stable
	Rule  string // the rule that a failure breaks, one sentence
	Needs string // what the driver or the harness must have; empty: nothing
}

// Cases lists the suite, in the order in which it runs.
func Cases() []Case {
	var list []Case
	for _, c := range allCases() {
		list = append(list, Case{Name: c.name, Rule: c.rule, Needs: c.needs.String()})
	}
	return list
}

// testCase is a case with what it does.
type testCase struct {
	name  string
	rule  string
	needs needs
	run   func(s *suite)
}

func allCases() []testCase {
	var all []testCase
	for _, group := range [][]testCase{
		capabilityCases, claimCases, settlingCases, leaseCases, takeoverCases,
		fencingCases, guardCases, uncertaintyCases, resolvingCases,
		transactionCases, rollbackCases, nestingCases, expiryCases, purgingCases,
		keyCases, outcomeCases, cancellationCases, contentionCases, formatCases,
		inspectingCases, batchCases, abilityCases, wrapperCases,
		executeCases, executeDeadCases, executeInboxCases,
	} {
		all = append(all, group...)
	}
	return all
}
