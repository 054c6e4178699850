package driver

import (
	"bytes"
	"strconv"
	"time"
)

// Key names a record. Both parts are bytes in a string, at most [MaxKeyPart]
// long each and never empty.
type Key struct {
	Scope string // the key space
	ID    string // the request within it
}

// String joins the parts so that two keys have the same string only if both
// parts are equal: the scope's length, the scope, the ID ("8:payments:pay-42").
// The form is frozen; stores may use it as their physical key.
func (k Key) String() string {
	return strconv.Itoa(len(k.Scope)) + ":" + k.Scope + ":" + k.ID
}

// Token identifies one claim. It is unpredictable, and zero names no claim.
type Token [16]byte

// FingerprintPrefix is the length of the version prefix of a fingerprint. Two
// fingerprints with different prefixes were made by different rules and
// cannot be compared.
const FingerprintPrefix = 4

// SameFingerprint reports whether two claims may be the same request: one side
// has no fingerprint, the version prefixes differ, or the bytes are equal. A
// driver whose backend decides must decide the same.
func SameFingerprint(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 || bytes.Equal(a, b) {
		return true
	}
	return !bytes.Equal(a[:min(len(a), FingerprintPrefix)], b[:min(len(b), FingerprintPrefix)])
}

// Guarantee is what a driver upholds for an operation.
type Guarantee uint8

// The guarantees. Their numbers are stored and never change.
const (
	// AtLeastOnce runs until an outcome is recorded: a lapsed lease is taken over.
	AtLeastOnce Guarantee = 1
	// AtMostOnce never runs again once it may have run: a lapsed lease is uncertain.
	AtMostOnce Guarantee = 2
	// ExactlyOnce commits effect and record in one transaction: see [Transactor].
	ExactlyOnce Guarantee = 3
)

// String returns the guarantee's name.
func (g Guarantee) String() string {
	return name("Guarantee", uint8(g), "", "AtLeastOnce", "AtMostOnce", "ExactlyOnce")
}

// Guarantees is a set of guarantees.
type Guarantees uint8

// GuaranteeSet returns the set of gs.
func GuaranteeSet(gs ...Guarantee) Guarantees {
	var set Guarantees
	for _, g := range gs {
		set |= 1 << g
	}
	return set
}

// Has reports whether g is in the set.
func (s Guarantees) Has(g Guarantee) bool { return g != 0 && s&(1<<g) != 0 }

// State is what a record is. Its numbers are stored and never change.
type State uint8

// The states of a record; zero is no state.
const (
	StateClaimed   State = 1 // a run holds the key, or did until its lease lapsed
	StateCompleted State = 2 // an outcome is stored
	StateUncertain State = 3 // it may have run, nobody knows how it ended
	StateExpired   State = 4 // the retention is over, the tombstone is not
	StateReleased  State = 5 // a stub that remembers the fence
)

// String returns the state's name.
func (s State) String() string {
	return name("State", uint8(s), "", "Claimed", "Completed", "Uncertain", "Expired", "Released")
}

// Decision is what a claim answers.
type Decision uint8

// The decisions; zero is no decision.
const (
	DecisionClaimed   Decision = 1 // the right to run is granted
	DecisionInFlight  Decision = 2 // another claim holds the key
	DecisionCompleted Decision = 3 // there is an outcome to replay
	DecisionUncertain Decision = 4 // it may have run; nobody may run it again
	DecisionExpired   Decision = 5 // it had an outcome, which is gone
)

// String returns the decision's name.
func (d Decision) String() string {
	return name("Decision", uint8(d), "", "Claimed", "InFlight", "Completed", "Uncertain", "Expired")
}

// OnLapse is what the end of a lease means for its record.
type OnLapse uint8

// The meanings of a lapse. Their numbers are stored and never change.
const (
	TakeOver  OnLapse = 1 // the next claim may take the record
	Uncertain OnLapse = 2 // the record is uncertain from then on
)

// String returns the meaning's name.
func (o OnLapse) String() string {
	return name("OnLapse", uint8(o), "", "TakeOver", "Uncertain")
}

// FailureKind is what a failure of an operation is.
type FailureKind uint8

// The kinds of failures.
const (
	KindUnknown        FailureKind = 0 // ask the next classifier
	KindDomain         FailureKind = 1 // an answer: trying again gives the same
	KindInfrastructure FailureKind = 2 // passing: trying again may succeed
	KindBug            FailureKind = 3 // the program is wrong
)

// String returns the kind's name.
func (k FailureKind) String() string {
	return name("FailureKind", uint8(k), "Unknown", "Domain", "Infrastructure", "Bug")
}

// name returns the name of the enum value n, or the type's name with the
// number for a value that this version does not know.
func name(typ string, n uint8, names ...string) string {
	if int(n) < len(names) && names[n] != "" {
		return names[n]
	}
	return typ + "(" + strconv.Itoa(int(n)) + ")"
}

// RoundUp rounds d up to a whole number of units of precision, so that a short
// lease never becomes none. [RetainForever] stays itself.
func RoundUp(d, precision time.Duration) time.Duration {
	rest := d % precision
	if d == RetainForever || rest == 0 {
		return d
	}
	if d > RetainForever-precision {
		return RetainForever
	}
	return d - rest + precision
}
