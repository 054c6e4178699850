package idem

import (
	"strconv"

	"github.com/idem-go/idem/driver"
)

// Guarantee is what an operation promises about its runs. A driver declares
// which guarantees it upholds.
type Guarantee = driver.Guarantee

const (
	// AtLeastOnce runs the function under a lease and replays its outcome. If
	// the process dies between the effect and its record, the next caller
	// runs the function again once the lease is over.
	AtLeastOnce = driver.AtLeastOnce
	// AtMostOnce never runs the function again once it was entered. If the
	// process dies before the record, the outcome is unknown
	// ([ErrOutcomeUnknown]) until somebody settles it.
	AtMostOnce = driver.AtMostOnce
	// ExactlyOnce commits the effect, the claim and the outcome in one
	// database transaction. It holds for effects in that database.
	ExactlyOnce = driver.ExactlyOnce
)

// FailureKind is what a failure of an operation is; see [ClassifierFunc].
type FailureKind = driver.FailureKind

const (
	// KindUnknown asks the next classifier.
	KindUnknown = driver.KindUnknown
	// KindDomain is an answer: trying again gives the same.
	KindDomain = driver.KindDomain
	// KindInfrastructure is passing: trying again may succeed.
	KindInfrastructure = driver.KindInfrastructure
	// KindBug is a program that is wrong: a panic.
	KindBug = driver.KindBug
)

// FailurePolicy says what a failure of the function means for its key. It
// governs AtLeastOnce; an inbox rolls back on any failure, and a guard's key
// stays claimed once its function was entered.
type FailurePolicy uint8

const (
	// PolicyCache stores domain failures and replays them; any other failure
	// releases the key, so that the next call runs. The default.
	PolicyCache FailurePolicy = 1
	// PolicyRelease releases the key on any failure: for queues and events,
	// whose broker delivers again.
	PolicyRelease FailurePolicy = 2
	// PolicyHold makes the key uncertain on any failure and when the owner
	// dies: nobody runs it again until somebody settles it.
	PolicyHold FailurePolicy = 3
)

// String returns the policy's name.
func (p FailurePolicy) String() string {
	switch p {
	case PolicyCache:
		return "PolicyCache"
	case PolicyRelease:
		return "PolicyRelease"
	case PolicyHold:
		return "PolicyHold"
	default:
		return "FailurePolicy(" + strconv.Itoa(int(p)) + ")"
	}
}
