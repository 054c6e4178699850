package driver

import "time"

// Capabilities says what a driver upholds. The conformance suite verifies
// each statement both ways.
type Capabilities struct {
	Contract   int        // [ContractVersion] at the time of writing
	Name       string     // for messages and logs: "memory", "sqlite"
	Guarantees Guarantees // ExactlyOnce needs a [Transactor]

	// Shared: other processes see the records. A driver that is not shared
	// protects one process only.
	Shared bool
	// Ephemeral: records and owners die together, so that a lease can never
	// outlive its owner and needs no heartbeat.
	Ephemeral bool
	// SingleWriter: a transaction of this store keeps every other writer out.
	// The engine refuses a lease or guard on it inside its own transaction,
	// which would wait for itself.
	SingleWriter bool
	// InFlightVisible: while [Transactor.Transact] runs, other claims can read
	// the record's fingerprint and lease.
	InFlightVisible bool

	MaxOutcome     int           // bytes that an outcome may have; 0: no limit of the driver's
	ClockPrecision time.Duration // of leases and retentions; above 0
	Features       Features
}

// Features are parts of the contract that a driver may lack. The engine
// refuses an option whose feature is missing, so that it is never silently ignored.
type Features uint32

// The features.
const (
	// FeatureTombstone: Tombstone in the parameters is kept, DecisionExpired is answered.
	FeatureTombstone Features = 1 << iota
	// FeatureReconcile: ClaimParams.Over takes an uncertain record.
	FeatureReconcile
)

// Has reports whether all of f are in the set.
func (s Features) Has(f Features) bool { return s&f == f }
