package idem

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/idem-go/idem/driver"
)

// Registry holds a program's operations, so that calls can name them by
// [Alias]. It is immutable and used concurrently. There is no global one: it
// reaches the calls by [ContextWithRegistry].
type Registry struct {
	def *Operation
	ops map[Alias]*Operation
}

type registryKey struct{}

// NewRegistry builds a registry of def, which calls without an alias use, and
// others. def may be nil: such calls are then refused. Two operations with one
// alias, or with overlapping key spaces on one store, are refused with an [*Error] of [ErrConfig].
func NewRegistry(def *Operation, others ...*Operation) (*Registry, error) {
	r := &Registry{def: def, ops: make(map[Alias]*Operation, len(others)+1)}
	all := others
	if def != nil {
		all = append([]*Operation{def}, others...)
	}
	for i, op := range all {
		if !op.built() {
			return nil, configError("", "an operation of the registry is nil or does not come from NewOperation: only the default may be nil")
		}
		if r.ops[op.alias] != nil {
			return nil, configError(op.alias, "two operations of the registry have this alias: rename one")
		}
		for _, other := range all[:i] {
			if op.overlaps(other) || other.overlaps(op) {
				return nil, configError(op.alias, "its keys would be records of %q too, on the same store: "+
					"give one of them WithKeySpace", string(other.alias))
			}
		}
		r.ops[op.alias] = op
	}
	return r, nil
}

// Operation returns the operation with the alias, or an [*Error] of
// [ErrConfig] that names those that there are.
func (r *Registry) Operation(alias Alias) (*Operation, error) {
	if op := r.ops[alias]; op != nil {
		return op, nil
	}
	names := make([]string, 0, len(r.ops))
	for a := range r.ops {
		names = append(names, strconv.Quote(string(a)))
	}
	slices.Sort(names)
	return nil, configError(alias, "the registry has no such operation, only %s", strings.Join(names, ", "))
}

// Verify verifies all operations, each store once; see [Operation.Verify].
func (r *Registry) Verify(ctx context.Context) error {
	type store struct {
		op   *Operation
		used driver.Guarantees
	}
	var stores []*store
	for _, alias := range r.aliases() {
		op := r.ops[alias]
		i := slices.IndexFunc(stores, func(s *store) bool { return s.op.base == op.base })
		if i < 0 {
			i = len(stores)
			stores = append(stores, &store{op: op})
		}
		stores[i].used |= driver.GuaranteeSet(op.guarantee)
	}
	for _, s := range stores {
		if err := s.op.verify(ctx, s.used); err != nil {
			return err
		}
	}
	return nil
}

func (r *Registry) aliases() []Alias {
	all := make([]Alias, 0, len(r.ops))
	for a := range r.ops {
		all = append(all, a)
	}
	slices.Sort(all)
	return all
}

// find returns the operation of a call that names one by alias, or none.
func find(ctx context.Context, alias Alias) (*Operation, error) {
	r, _ := ctx.Value(registryKey{}).(*Registry)
	switch {
	case r == nil:
		return nil, configError(alias, "the call names no operation: pass idem.On(op), "+
			"or put a registry into the context with idem.ContextWithRegistry")
	case alias != "":
		return r.Operation(alias)
	case r.def == nil:
		return nil, configError("", "the registry has no default operation: pass idem.On(op) or idem.Alias(\"…\")")
	}
	return r.def, nil
}
