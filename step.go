package idem

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/idem-go/idem/driver"
)

// StepRetention is how long a finished step is remembered, so that a run after
// a crash need not repeat it.
const StepRetention = 24 * time.Hour

// Step runs a part of an operation's function, once in the key's generation:
// if the run dies later and the key is run again, the step's value is replayed and fn
// does not run. When the operation's outcome has expired and the key runs
// anew, its steps run anew. A step that fails is not remembered; its error is
// fn's own, and the step may be tried again in the same run.
//
// ctx is the function's context or one made from it. Names are unique within
// a run, and within a step for the steps inside it: a name that is running or has
// finished is refused. Steps with different names may run in parallel. A step runs at least once, like an AtLeastOnce operation. In
// an ExactlyOnce run it just runs, since the transaction takes everything back together.
func Step[T any](ctx context.Context, name string, fn func(context.Context) (T, error)) (T, error) {
	r := runner[T]{fn: fn}
	err := executeStep(ctx, name, &r)
	return r.value, err
}

// stepPath is the step that a context belongs to.
type stepPath struct {
	run  *Attempt // whose step it is: a run that is made inside a step has steps of its own
	path string
}

type stepKey struct{}

func executeStep(ctx context.Context, name string, w work) error {
	a, ok := FromContext(ctx)
	if !ok {
		return configError("", "Step(%q) outside a run: call it inside the function that Execute runs, with its context", name)
	}
	parent := a.call
	c := w.state()
	c.work = w
	c.op, c.outer = parent.op.steps(), a
	c.info = Info{Operation: parent.op.alias, Key: parent.info.Key}
	outer, _ := ctx.Value(stepKey{}).(stepPath)
	if outer.run != a {
		outer.path = ""
	}
	path := appendPart(outer.path, name)
	switch {
	case blank(name):
		return c.fail(ErrConfig, errors.New("a step's name is blank: name what it does"))
	case !w.callable():
		return c.fail(ErrConfig, fmt.Errorf("the function of the step %q is nil", name))
	case a.over():
		return c.fail(ErrLeaseLost, fmt.Errorf("the step %q: the operation's function has returned", name))
	case !a.addStep(path):
		return c.fail(ErrConfig, fmt.Errorf("the step %q runs twice in this run: give each its own name", name))
	}
	finished := false
	defer func() {
		if !finished { // also after a panic that is recovered further up
			a.dropStep(path)
		}
	}()
	err := c.executeStep(ctx, parent, stepPath{run: a, path: path})
	finished = err == nil
	return err
}

// executeStep runs the call as the step at path.
func (c *call) executeStep(ctx context.Context, parent *call, path stepPath) error {
	ctx = context.WithValue(ctx, stepKey{}, path)
	if parent.op.guarantee == ExactlyOnce || parent.info.Fence == 0 { // 0: it failed open
		return c.work.invoke(ctx)
	}
	if !c.op.caps.Guarantees.Has(AtLeastOnce) {
		return c.fail(ErrConfig, fmt.Errorf("steps need a driver that upholds AtLeastOnce, which %s does not", c.op.caps.Name))
	}
	return c.step(ctx, parent, path.path)
}

// step runs the call as a step of its parent.
func (c *call) step(ctx context.Context, parent *call, path string) (err error) {
	c.set = parent.set
	c.set.policy, c.set.retention, c.set.failOpen = PolicyRelease, StepRetention, false
	c.set.observer = Observer{}
	// A run that took over may find the step still leased to the owner before.
	c.set.wait = 2 * c.set.leaseTTL
	if c.typ, err = c.op.resultType(c.work.resultType(), &c.set); err != nil {
		return c.fail(ErrConfig, err)
	}
	c.key = driver.Key{
		// No scope that a call can have contains an empty part.
		Scope: joinScope(parent.key.Scope, ""),
		ID:    shorten(JoinKey(parent.key.ID, strconv.FormatInt(parent.generation, 10), path)),
	}
	return c.begin(ctx)
}

// steps returns the operation that the steps of op run as.
func (op *Operation) steps() *Operation {
	op.stepsOnce.Do(func() {
		op.stepsOp = &Operation{
			alias: op.alias, guarantee: AtLeastOnce, driver: op.driver, base: op.base, batch: op.batch, caps: op.caps, space: op.space,
			scope: op.scope, defaults: op.defaults, maxResult: op.maxResult, typeNames: op.typeNames,
			transforms: op.transforms, logger: op.logger, inner: true,
		}
	})
	return op.stepsOp
}
