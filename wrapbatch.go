package idem

import (
	"context"
	"runtime"
	"sync"
)

// WrapBatch returns fn as a function that runs once for each key of a batch of
// inputs, as [Wrap] does for one input: it returns a value and an error for
// each, in their order. Where the driver can, the claims of a batch are
// sent together, and so are the outcomes of the runs that end at about the same time;
// then fn is called for all of the batch at the same time. Where it cannot, and on an
// ExactlyOnce operation, whose transactions are one each, the inputs are taken one after
// the other. Each input has its own answer: what fails for one is not felt by the others.
//
// A process that dies may leave as many keys claimed as the batch is large. An
// input whose key stands in the batch before is answered by that one's outcome.
// If fn panics, or calls runtime.Goexit, the others end first.
func WrapBatch[In, Out any](
	op *Operation, key KeyFunc[In], fn func(context.Context, In) (Out, error), opts ...WrapOption,
) (func(context.Context, []In) ([]Out, []error), error) {
	single, err := Wrap(op, key, fn, opts...)
	if err != nil {
		return nil, err
	}
	w := wrapped{opts: []ExecuteOption{On(op)}}
	for _, o := range opts {
		_ = w.add(o) // Wrap has taken it
	}
	return func(ctx context.Context, ins []In) ([]Out, []error) {
		b := batch[In, Out]{key: key, fn: fn, single: single, w: &w, ins: ins, outs: make([]Out, len(ins)), errs: make([]error, len(ins))}
		b.run(ctx, op)
		return b.outs, b.errs
	}, nil
}

// batch is one call of what WrapBatch returns.
type batch[In, Out any] struct {
	key    KeyFunc[In]
	fn     func(context.Context, In) (Out, error)
	single func(context.Context, In) (Out, error)
	w      *wrapped
	ins    []In
	outs   []Out
	errs   []error
}

func (b *batch[In, Out]) run(ctx context.Context, op *Operation) {
	together, rest := b.split(op)
	if len(together) > 0 {
		b.together(ctx, newGathering(op, len(together)), together)
	}
	for _, i := range rest {
		b.outs[i], b.errs[i] = b.single(ctx, b.ins[i])
	}
}

// split says which inputs go together, with their keys, and which have to wait for their turn: no
// key occurs twice in what a driver is asked at once.
func (b *batch[In, Out]) split(op *Operation) (together map[int]string, rest []int) {
	gathers := op.gathers()
	seen := make(map[string]bool, len(b.ins))
	together = make(map[int]string, len(b.ins))
	for i := range b.ins {
		if gathers {
			if k, err := b.key(b.ins[i]); err == nil && !seen[k] {
				seen[k] = true
				together[i] = k
				continue
			}
		}
		rest = append(rest, i)
	}
	return together, rest
}

// together runs inputs at the same time.
func (b *batch[In, Out]) together(ctx context.Context, g *gathering, inputs map[int]string) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var panicked any
	exited := false
	for i, key := range inputs {
		wg.Go(func() {
			returned := false
			defer func() {
				if returned {
					return
				}
				p := recover() // it goes on below, where the caller can recover it
				mu.Lock()
				defer mu.Unlock()
				if panicked == nil {
					panicked = p
				}
				exited = exited || p == nil
			}()
			b.one(ctx, g, i, key)
			returned = true
		})
	}
	wg.Wait()
	g.end()
	if panicked != nil {
		panic(panicked)
	}
	if exited {
		runtime.Goexit()
	}
}

// one runs an input as a member of the gathering.
func (b *batch[In, Out]) one(ctx context.Context, g *gathering, i int, key string) {
	m := &batchMember{of: g}
	defer m.leave()
	r := runner[Out]{fn: func(ctx context.Context) (Out, error) { return b.fn(ctx, b.ins[i]) }}
	r.member = m
	b.errs[i] = execute(ctx, key, &r, b.w.with(b.ins[i]))
	b.outs[i] = r.value
}
