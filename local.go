package idem

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/idem-go/idem/driver"
	"github.com/idem-go/idem/internal/cache"
)

const (
	// LocalCacheAge is how long an outcome may be answered from the memory of
	// a process although it was forgotten or resolved in another.
	LocalCacheAge = time.Minute

	// maxCached is the largest outcome that is kept in memory, in bytes.
	maxCached = 16 << 10
)

type localCacheOption struct {
	forOperation
	n int
}

// WithLocalCache keeps up to n finished outcomes of at most 16 KiB in memory,
// so that duplicates in this process do not ask the store. An outcome is kept
// once the store has it, and no longer than the store keeps it, as counted by
// the store's clock. One that this operation's [Operation.Forget] or
// [Operation.Resolve] changes goes at once; one that another process changes
// within [LocalCacheAge]. Fingerprints are checked. Default: off.
func WithLocalCache(n int) OperationOption { return localCacheOption{n: n} }

func (op *Operation) setLocalCache(n int) error {
	if n < 1 {
		return fmt.Errorf("WithLocalCache(%d): give how many outcomes to keep, at least 1", n)
	}
	op.local = cache.New[driver.Key, localOutcome](n)
	return nil
}

// localOutcome is a finished outcome in memory.
type localOutcome struct {
	res   driver.ClaimResult // completed
	value any                // what it decodes to, where copies share no memory; nil: not decoded yet
	until time.Time
}

// remember keeps a finished outcome that the store was asked for at the given
// time, when so many keys had been settled.
func (op *Operation) remember(key driver.Key, res driver.ClaimResult, asked time.Time, settled int64) {
	if op.local == nil || res.Decision != driver.DecisionCompleted || len(res.Outcome) > maxCached {
		return
	}
	until := asked.Add(min(res.LifeLeft, LocalCacheAge))
	op.keep(key, localOutcome{res: res, until: until}, settled)
}

// keep keeps o, unless a key was settled since it was read: it may be this one.
func (op *Operation) keep(key driver.Key, o localOutcome, settled int64) {
	op.local.Put(key, o, o.until)
	if op.settled.Load() != settled {
		op.local.Delete(key)
	}
}

// forget drops what is kept of a key that the store has settled, and what
// calls under way are about to keep.
func (op *Operation) forget(key driver.Key) {
	if op.local != nil {
		op.settled.Add(1)
		op.local.Delete(key)
	}
}

// answerLocally answers the call from memory, if it can.
func (c *call) answerLocally() (err error, ok bool) {
	if c.op.local == nil {
		return nil, false
	}
	settled := c.op.settled.Load()
	o, ok := c.op.local.Get(c.key)
	if !ok {
		return nil, false
	}
	err = c.answer(o.res)
	if err == nil && o.value == nil && flat(c.work.resultType()) {
		o.value = c.work.copied()
		c.op.keep(c.key, o, settled)
	}
	return err, true
}

// localValue is the short way of a call that has no option but its operation, and
// whose value is in memory: it makes nothing that has to be freed.
func localValue[T any](ctx context.Context, key string, opts []ExecuteOption) (v T, ok bool) {
	if len(opts) != 1 {
		return v, false
	}
	on, _ := opts[0].(onOption)
	if on.op == nil || on.op.local == nil || on.op.observed() || ctx.Err() != nil {
		return v, false
	}
	o, ok := on.op.local.Get(driver.Key{Scope: on.op.scope, ID: shorten(key)})
	if !ok {
		return v, false
	}
	v, ok = o.value.(T)
	return v, ok
}

func (op *Operation) observed() bool {
	o := op.defaults.observer
	return o.Begin != nil || o.End != nil
}

// flat reports whether copies of a value share no memory that could be changed.
func flat(t reflect.Type) bool {
	switch t.Kind() { //nolint:exhaustive // everything else may share
	case reflect.Bool, reflect.String,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return true
	case reflect.Array:
		return flat(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if !flat(f.Type) {
				return false
			}
		}
		return true
	}
	return false
}
