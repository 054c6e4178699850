package driver

import (
	"context"
	"time"
)

// As finds the ability T of d, in d itself or in the drivers that it wraps
// (through a method Unwrap() Driver). A wrapper that changes keys, bytes or
// the order of calls must have no Unwrap; it implements each ability itself.
func As[T any](d Driver) (T, bool) {
	for d != nil {
		if t, ok := d.(T); ok {
			return t, true
		}
		w, ok := d.(interface{ Unwrap() Driver })
		if !ok {
			break
		}
		d = w.Unwrap()
	}
	var none T
	return none, false
}

// Transactor is required for [ExactlyOnce]: claim, fn, completion and commit
// are one transaction that the driver owns.
type Transactor interface {
	// Transact begins a transaction, claims as [Driver.Claim] does, and if the
	// claim is granted calls fn with a context that carries the transaction,
	// completes with what fn returns, and commits. If the claim is not
	// granted, fn is not called, nothing is written, and the result's Claim
	// says why.
	//
	// A key that another transaction holds is DecisionInFlight at once: the
	// claim never waits in the server for a lock on the key.
	//
	// If fn fails, everything is rolled back and fn's error is returned
	// unchanged, or wrapped together with [ErrConflict] if the failure is a
	// serialization failure or deadlock that this transaction met; likewise
	// everything is rolled back if fn panics or calls runtime.Goexit, which go
	// on, and if the completion is refused, with the error that Complete would
	// return. A failure before fn is entered is retried
	// by the driver, bounded; after that the driver never calls fn again and
	// returns [ErrConflict] if everything was rolled back for sure, or
	// [ErrUnknown] if the commit may have happened. The engine settles the latter by
	// transacting again with the same token: DecisionCompleted with Own says
	// that it had committed.
	//
	// In a context that carries a transaction of this store, it joins that
	// one: a savepoint in place of the transaction, Joined in the result,
	// and nothing is retried. The methods of Driver join nothing: in such a
	// context they act apart from the transaction, or return [ErrNested] at
	// once if the driver is a SingleWriter.
	//
	// If the driver does not declare ExactlyOnce, it returns [errors.ErrUnsupported].
	Transact(ctx context.Context, p TransactParams, fn TransactFunc) (TransactResult, error)
}

// TransactFunc is the part of a transaction between its claim and its completion.
type TransactFunc func(ctx context.Context, claim ClaimResult) (CompleteParams, error)

// TransactParams are the parameters of [Transactor.Transact].
type TransactParams struct {
	Claim ClaimParams
}

// TransactResult is the answer to [Transactor.Transact].
type TransactResult struct {
	Claim    ClaimResult
	Complete CompleteResult // if fn was called and the transaction committed, or the savepoint was released
}

// Inspector reads a record without changing it.
type Inspector interface {
	Inspect(ctx context.Context, p InspectParams) (InspectResult, error)
}

// InspectParams are the parameters of [Inspector.Inspect].
type InspectParams struct {
	Key Key
}

// InspectResult is the answer to [Inspector.Inspect].
type InspectResult struct {
	Found  bool // false also for a record that is past everything it was kept for
	Record Record
}

// Record is a record as the backend's clock sees it now: a lapsed lease with
// Uncertain is StateUncertain, one with TakeOver is StateClaimed with LeaseLeft 0,
// a completed record past its retention is StateExpired while its tombstone lasts.
type Record struct {
	Key         Key
	State       State
	Guarantee   Guarantee
	OnLapse     OnLapse
	Fence       int64
	Generation  int64
	Attempt     int
	Fingerprint []byte
	Outcome     []byte
	Format      int
	LeaseLeft   time.Duration
	LifeLeft    time.Duration
	ClaimedAt   time.Time
	CompletedAt time.Time
}

// Lister lists the records of a scope, in any order, each at least once if it
// exists during the whole listing.
type Lister interface {
	List(ctx context.Context, p ListParams) (ListResult, error)
}

// ListParams are the parameters of [Lister.List].
type ListParams struct {
	Scope string // empty: all
	State State  // zero: all
	After string // Next of the page before; empty: the first page
	Limit int    // records a page at most; above 0, else ErrInvalid
}

// ListResult is the answer to [Lister.List].
type ListResult struct {
	Records []Record
	Next    string // empty: this was the last page
}

// Resolver settles a record by hand. It is a compare-and-swap on the fence.
type Resolver interface {
	// Resolve carries out the action if the record has the fence and a state
	// that the action applies to, else it changes nothing and says what there
	// is. The former owner's token is gone afterwards: its completion,
	// release and renewal are [ErrLost]. A live claim is never resolved. A
	// record of a newer format is [ErrNewerFormat].
	Resolve(ctx context.Context, p ResolveParams) (ResolveResult, error)
}

// ResolveAction is what [Resolver.Resolve] does.
type ResolveAction uint8

// The actions.
const (
	ResolveCompleted ResolveAction = 1 // uncertain: completed with the outcome
	ResolveNotRun    ResolveAction = 2 // uncertain: a stub, the generation goes on
	ResolveForget    ResolveAction = 3 // any record but a live claim: as if it had never been, but for the fence
)

// String returns the action's name.
func (a ResolveAction) String() string {
	return name("ResolveAction", uint8(a), "", "Completed", "NotRun", "Forget")
}

// ResolveParams are the parameters of [Resolver.Resolve].
type ResolveParams struct {
	Key       Key
	Fence     int64
	Action    ResolveAction
	Outcome   []byte        // ResolveCompleted
	Retention time.Duration // ResolveCompleted
	Tombstone time.Duration // ResolveCompleted
	Format    int
}

// ResolveResult is the answer to [Resolver.Resolve].
type ResolveResult struct {
	Applied bool
	// What the record is if the action was not applied; State 0: there is none.
	State     State
	Fence     int64
	LeaseLeft time.Duration
}

// Purger deletes records that are past everything they were kept for.
type Purger interface {
	// Purge deletes at most Limit records: stubs past their keep, leases with
	// TakeOver that lapsed more than [FenceMemory] ago, completed and
	// uncertain records past their retention and tombstone, none of them
	// earlier than FenceMemory after its last transition. Live claims and
	// records that are kept for ever stay. Parallel purges are safe.
	Purge(ctx context.Context, p PurgeParams) (PurgeResult, error)
}

// PurgeParams are the parameters of [Purger.Purge].
type PurgeParams struct {
	Limit int // above 0, else ErrInvalid
}

// PurgeResult is the answer to [Purger.Purge].
type PurgeResult struct {
	Purged int // fewer than Limit: nothing is left to purge now
}

// Verifier checks at start-up what only the server can tell.
type Verifier interface {
	// Verify returns an error that wraps [ErrUnfit] and says what to change if
	// the store cannot keep what the guarantees in use promise: a schema that
	// is missing or old, a durability setting that may lose what was
	// acknowledged. Any other error says that the store could not be asked.
	Verify(ctx context.Context, p VerifyParams) (VerifyResult, error)
}

// VerifyParams are the parameters of [Verifier.Verify].
type VerifyParams struct {
	Guarantees Guarantees // in use
}

// VerifyResult is the answer to [Verifier.Verify].
type VerifyResult struct {
	Warnings []string // whole sentences
}

// Watcher tells of changes to a record. It is a hint: notifications may be
// spurious, late or lost, so a waiter polls as well.
type Watcher interface {
	// Watch calls Changed, from any goroutine, after the record may have
	// changed, until Stop is called or ctx ends.
	Watch(ctx context.Context, p WatchParams) (WatchResult, error)
}

// WatchParams are the parameters of [Watcher.Watch].
type WatchParams struct {
	Key     Key
	Changed func() // must not block
}

// WatchResult is the answer to [Watcher.Watch].
type WatchResult struct {
	Stop func() // never nil; may be called more than once; does not wait for a running Changed
}

// Classifier knows the errors of the driver's own client library.
type Classifier interface {
	// Classify says what an error that the effect met is; KindUnknown if it
	// is none that the driver knows.
	Classify(p ClassifyParams) ClassifyResult
}

// ClassifyParams are the parameters of [Classifier.Classify].
type ClassifyParams struct {
	Err error
}

// ClassifyResult is the answer to [Classifier.Classify].
type ClassifyResult struct {
	Kind FailureKind
}

// Overlapper tells whether two drivers keep their records in the same place.
// Without it, they do only if they are the same value.
type Overlapper interface {
	// Overlaps reports whether a record of Scope here can be the same as one of
	// OtherScope in Other. It asks no server.
	Overlaps(p OverlapParams) OverlapResult
}

// OverlapParams are the parameters of [Overlapper.Overlaps].
type OverlapParams struct {
	Scope      string
	Other      Driver // unwrapped as far as it can be
	OtherScope string
}

// OverlapResult is the answer to [Overlapper.Overlaps].
type OverlapResult struct {
	Overlap bool
}
