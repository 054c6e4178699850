package driver

import (
	"context"
	"math"
	"time"
)

// ContractVersion is the version of this contract. A driver returns the
// version that it was written against in [Capabilities.Contract].
const ContractVersion = 1

// FenceMemory is how long a record is kept at least after its last transition
// (a release, the end of an abandoned lease, a completion), so that the fence of its key keeps
// rising although the backend's clock steps back by less than that.
const FenceMemory = 10 * time.Minute

// RetainForever is the retention of a record that never expires. It is a mark,
// not a length: a driver never adds it to a time.
const RetainForever = time.Duration(math.MaxInt64)

// MaxKeyPart is the largest length of a [Key]'s scope and of its ID, each, in bytes.
// The engine shortens what is longer before a driver sees it.
const MaxKeyPart = 256

// Driver is a store of idempotency records. Its methods are called
// concurrently. A driver is built on a client or pool that its user opened; it
// never closes what it did not open.
type Driver interface {
	// Capabilities says what the driver upholds. It asks no server and always
	// returns the same answer.
	Capabilities() Capabilities

	// Claim asks for the exclusive right to run the operation of a key and
	// answers with a [Decision]. The right is granted ([DecisionClaimed]) when
	//
	//   - there is no record, or a completed or uncertain one whose retention
	//     and tombstone are over, or a stub that is past its keep: a new
	//     generation, attempt 1;
	//   - there is a stub of another token: the stub's generation, its attempt + 1;
	//   - a lease with [TakeOver] has lapsed, and [SameFingerprint] holds for
	//     the stored and the given fingerprint, or the lapse is more than
	//     [FenceMemory] ago: the record's generation, its attempt + 1,
	//     TookOver;
	//   - the record is uncertain and has the fence in Over: likewise;
	//   - the record is claimed and carries this very token, lapsed or not,
	//     whatever its OnLapse: it is recognised as the claim's own (Own),
	//     nothing is written, no lease is prolonged, LeaseLeft says what is
	//     left of it.
	//
	// A new fence is max(stored fence + 1, the backend's clock in µs since
	// 1970). A new generation is the fence that starts it. A claim stores its
	// fingerprint; a takeover without one keeps the stored one.
	//
	// Otherwise: a live lease is DecisionInFlight with what is left of it; a
	// lapsed lease with another fingerprint is DecisionInFlight with LeaseLeft
	// 0; a completed record is DecisionCompleted with its outcome (Own if the
	// token completed it); an uncertain one, or a lapsed lease with
	// [Uncertain], is DecisionUncertain; one past its retention but not its tombstone
	// is DecisionExpired. None of these changes the record.
	//
	// The record's OnLapse decides, whatever the claim's says; a granted claim
	// stores its own. A claim that finds the stub of its own release returns
	// [ErrLost]. A record whose Format is above the claim's returns
	// [ErrNewerFormat], one that cannot be read (a claimed record without a
	// lease end among them) [ErrCorrupt]; both are left as they are. A driver
	// that cannot take another record returns [ErrBusy].
	Claim(ctx context.Context, p ClaimParams) (ClaimResult, error)

	// Complete stores how the run ended. It succeeds while the record is
	// claimed and carries the token, lapsed or not. If the token has completed
	// the record before, it succeeds with Already and changes nothing. In
	// every other case, an absent record included, it returns [ErrLost]. An
	// outcome that the backend cannot hold returns [ErrTooLarge] and changes
	// nothing.
	Complete(ctx context.Context, p CompleteParams) (CompleteResult, error)

	// Release gives a claim back: the record becomes a stub without an
	// outcome. It succeeds while the record is claimed and carries the token,
	// lapsed or not, and again on the stub that it left. In every other case
	// it returns [ErrLost].
	Release(ctx context.Context, p ReleaseParams) (ReleaseResult, error)

	// Renew prolongs the lease to at least Lease from now on the backend's
	// clock; it never shortens one. It succeeds while the record is claimed
	// and carries the token, lapsed or not. In every other case it returns
	// [ErrLost].
	Renew(ctx context.Context, p RenewParams) (RenewResult, error)
}

// ClaimParams are the parameters of [Driver.Claim].
type ClaimParams struct {
	Key   Key
	Token Token // never zero

	// Fingerprint is a hash of the request, behind a version prefix of
	// [FingerprintPrefix] bytes. Empty: the claim has none.
	Fingerprint []byte

	Lease     time.Duration // above 0; rounded up to the backend's precision
	OnLapse   OnLapse
	Guarantee Guarantee // of the operation; stored for [Inspector]

	// Retention and Tombstone are those of a record that becomes uncertain by
	// the end of its lease; they count from then. Under TakeOver they only
	// foretell what the outcome will be kept for. RetainForever: it never expires.
	Retention time.Duration
	Tombstone time.Duration

	// Over is the fence of an uncertain record that this claim may take (see
	// [FeatureReconcile]); 0: none.
	Over int64

	// WaiterHint says that the caller means to wait if the key is in flight, so that a
	// driver with a [Watcher] tells it of the completion. It never makes the
	// server wait.
	WaiterHint bool

	Format int // the engine's record format, 1 or more
}

// ClaimResult is the answer to a claim. Fields that a decision does not
// mention are zero.
type ClaimResult struct {
	Decision Decision
	Own      bool // the record carries the claim's token: a claim sent again
	TookOver bool // the claim before this one in its generation was not released
	Joined   bool // Transact only: inside a transaction that the caller opened

	Fence      int64
	Generation int64
	Attempt    int // from 1 in its generation

	Fingerprint []byte  // stored before this claim; empty: none
	Outcome     []byte  // DecisionCompleted
	OnLapse     OnLapse // of the record
	Format      int     // of the record

	LeaseLeft time.Duration // Claimed, InFlight; never below 0
	LifeLeft  time.Duration // Completed, Uncertain: until the retention ends; Expired: until the tombstone does; RetainForever: never

	ClaimedAt   time.Time // the current claim, or the one that led to the state; backend's clock
	CompletedAt time.Time // Completed, Expired: the terminal transition; Uncertain: that, or the lease's end
	DecidedAt   time.Time // when this was decided; zero where the backend cannot say it in the same step
}

// CompleteParams are the parameters of [Driver.Complete].
type CompleteParams struct {
	Key       Key
	Token     Token
	To        State         // StateCompleted or StateUncertain
	Outcome   []byte        // never empty for StateCompleted; empty for StateUncertain
	Retention time.Duration // counts from now on the backend's clock
	Tombstone time.Duration // 0: none; counts from the end of the retention
	Format    int
}

// CompleteResult is the answer to [Driver.Complete].
type CompleteResult struct {
	CompletedAt time.Time // backend's clock
	LifeLeft    time.Duration
	Already     bool // this token had completed the record before; the first outcome stays
}

// ReleaseParams are the parameters of [Driver.Release].
type ReleaseParams struct {
	Key   Key
	Token Token
	// Keep is how long the stub remembers its generation and attempt; at least
	// FenceMemory is kept whatever it says.
	Keep time.Duration
}

// ReleaseResult is the answer to [Driver.Release].
type ReleaseResult struct{}

// RenewParams are the parameters of [Driver.Renew].
type RenewParams struct {
	Key   Key
	Token Token
	Lease time.Duration // above 0, from now on the backend's clock
}

// RenewResult is the answer to [Driver.Renew].
type RenewResult struct {
	LeaseLeft time.Duration
}
