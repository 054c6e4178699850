package idem

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/idem-go/idem/codec"
	"github.com/idem-go/idem/driver"
	"github.com/idem-go/idem/internal/cache"
)

// Alias names an operation: it picks one from the registry in the context, and
// it is the default key space of the operation's keys in the store.
type Alias string

// Operation is a named kind of work: a driver, the guarantee that it is used
// for, and default options. It is immutable and used concurrently.
type Operation struct {
	alias     Alias
	guarantee Guarantee
	driver    driver.Driver
	base      driver.Driver // the driver at the bottom of its wrappers
	caps      driver.Capabilities
	tx        driver.Transactor // ExactlyOnce
	space     string            // as given
	scope     string            // the stored form of space

	defaults        settings
	maxResult       int
	tombstone       time.Duration
	withoutOutcomes bool
	withoutText     bool
	replayables     []replayable
	transforms      []codec.Transform
	fingerprintKey  []byte
	typeNames       map[reflect.Type]resultType
	logger          *slog.Logger // nil: slog.Default()

	local     *cache.Cache[driver.Key, localOutcome] // nil: off
	settled   atomic.Int64                           // how often somebody has settled or forgotten a key here
	inner     bool                                   // of the steps of another operation
	stepsOnce sync.Once                              // of stepsOp
	stepsOp   *Operation                             // see steps

	types   sync.Map            // reflect.Type to resultType, for the default codec
	batch   driver.BatchRenewer // nil: the driver renews one lease at a time
	watcher driver.Watcher      // nil: the driver does not tell of changes
	beats   beats
	flights flights
}

// NewOperation builds the operation alias on the driver d. Everything that
// can be wrong with it is refused here, with an [*Error] of [ErrConfig]: a
// guarantee that the driver does not declare, options that do not go together.
// Nothing is asked of the store; see [Operation.Verify].
func NewOperation(alias Alias, d driver.Driver, g Guarantee, opts ...OperationOption) (*Operation, error) {
	op := &Operation{alias: alias, guarantee: g, driver: d, space: string(alias), maxResult: DefaultMaxResultSize}
	if blank(string(alias)) {
		return nil, configError("", "the alias %q is blank: name the operation", string(alias))
	}
	if isNil(d) {
		return nil, configError(alias, "the driver is nil: open one, for example with idemmemory.New()")
	}
	if err := op.adopt(d); err != nil {
		return nil, err
	}
	op.defaults = newSettings(g)
	for _, o := range opts {
		if err := op.set(o); err != nil {
			return nil, configError(alias, "%w", err)
		}
	}
	if err := op.defaults.check(op.caps); err != nil {
		return nil, configError(alias, "%w", err)
	}
	if op.withoutOutcomes && op.defaults.reconcile != nil {
		return nil, configError(alias, "WithoutOutcomes and WithReconcile: a guard that stores no outcomes has none to ask for: leave one out")
	}
	if op.withoutOutcomes && op.local != nil {
		return nil, configError(alias, "WithoutOutcomes and WithLocalCache: there are no outcomes to keep: leave one out")
	}
	for _, r := range op.replayables {
		if err := r.check(op.defaults.codec); err != nil {
			return nil, configError(alias, "%w", err)
		}
	}
	op.defaults.ownCodec = true
	op.scope = joinScope(op.space)
	return op, nil
}

// adopt checks that the driver can be used for the operation.
func (op *Operation) adopt(d driver.Driver) error {
	op.caps = d.Capabilities()
	op.base = unwrap(d)
	switch {
	case op.caps.Contract < 1 || op.caps.Contract > driver.ContractVersion:
		return configError(op.alias, "the driver %T was written for version %d of the contract, this package for %d: "+
			"use versions of both that match", d, op.caps.Contract, driver.ContractVersion)
	case !reflect.ValueOf(op.base).Comparable():
		return configError(op.alias, "the driver %T cannot be compared: pass a pointer to it", op.base)
	case op.guarantee < AtLeastOnce || op.guarantee > ExactlyOnce:
		return configError(op.alias, "%v is no guarantee: use AtLeastOnce, AtMostOnce or ExactlyOnce", op.guarantee)
	case !op.caps.Guarantees.Has(op.guarantee):
		return configError(op.alias, "the driver %s does not uphold %v: choose one of the guarantees that it does, or another driver",
			op.caps.Name, op.guarantee)
	}
	op.batch, _ = driver.As[driver.BatchRenewer](d)
	op.watcher, _ = driver.As[driver.Watcher](d)
	if op.guarantee != ExactlyOnce {
		return nil
	}
	tx, ok := driver.As[driver.Transactor](d)
	if !ok {
		return configError(op.alias, "the driver %s declares ExactlyOnce but %T is no driver.Transactor", op.caps.Name, d)
	}
	op.tx = tx
	return nil
}

// built reports whether the operation comes from NewOperation.
func (op *Operation) built() bool { return op != nil && op.driver != nil }

// Alias returns the operation's name.
func (op *Operation) Alias() Alias { return op.alias }

// Guarantee returns what the operation promises.
func (op *Operation) Guarantee() Guarantee { return op.guarantee }

// Driver returns the driver that the operation was built on.
func (op *Operation) Driver() driver.Driver { return op.driver }

// Verify asks the store whether it can keep what the operation promises; call it at
// start-up. A store that cannot is an [*Error] of [ErrConfig] that says what to
// change, one that cannot be asked of [ErrStore]. What is merely doubtful is
// logged. A driver that needs no such check always passes.
func (op *Operation) Verify(ctx context.Context) error {
	return op.verify(ctx, driver.GuaranteeSet(op.guarantee))
}

func (op *Operation) verify(ctx context.Context, used driver.Guarantees) error {
	v, ok := driver.As[driver.Verifier](op.driver)
	if !ok {
		return nil
	}
	res, err := v.Verify(ctx, driver.VerifyParams{Guarantees: used})
	if errors.Is(err, driver.ErrUnfit) {
		return &Error{Reason: ErrConfig, Operation: op.alias, Err: err}
	}
	if err != nil {
		return &Error{Reason: ErrStore, Operation: op.alias, Err: err}
	}
	for _, w := range res.Warnings {
		op.log().LogAttrs(ctx, slog.LevelWarn, "idem: "+w, slog.String("operation", string(op.alias)))
	}
	return nil
}

func (op *Operation) log() *slog.Logger {
	if op.logger != nil {
		return op.logger
	}
	return slog.Default()
}

// overlaps reports whether records of the two operations can be the same.
func (op *Operation) overlaps(other *Operation) bool {
	if o, ok := driver.As[driver.Overlapper](op.driver); ok {
		return o.Overlaps(driver.OverlapParams{Scope: op.scope, Other: other.base, OtherScope: other.scope}).Overlap
	}
	return op.base == other.base && op.scope == other.scope
}

// unwrap returns the driver at the bottom of d's wrappers.
func unwrap(d driver.Driver) driver.Driver {
	for {
		w, ok := d.(interface{ Unwrap() driver.Driver })
		if !ok || w.Unwrap() == nil {
			return d
		}
		d = w.Unwrap()
	}
}

// isNil also finds a nil pointer inside the interface.
func isNil(d driver.Driver) bool {
	if d == nil {
		return true
	}
	v := reflect.ValueOf(d)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
