package idem

import (
	"errors"
	"fmt"
	"slices"

	"github.com/idem-go/idem/codec"
	"github.com/idem-go/idem/internal/envelope"
)

type transformsOption struct {
	forOperation
	transforms []codec.Transform
}

// WithTransforms changes what is stored of an outcome, a failure's text
// included: to compress it, to encrypt it. They are applied in their order (so
// compress first) and undone in reverse. Records from before can be read as
// long as the transforms that they name are among those given; a record
// without any is read as it is. Default: none.
func WithTransforms(t ...codec.Transform) OperationOption { return transformsOption{transforms: t} }

func (op *Operation) setTransforms(ts []codec.Transform) error {
	if len(ts) == 0 || len(ts) > envelope.MaxTransforms {
		return fmt.Errorf("WithTransforms: %d transforms: give 1 to %d", len(ts), envelope.MaxTransforms)
	}
	for i, t := range ts {
		if t == nil {
			return errNil("WithTransforms")
		}
		if t.Name() == "" || slices.ContainsFunc(ts[:i], func(o codec.Transform) bool { return o.Name() == t.Name() }) {
			return fmt.Errorf("WithTransforms: %T is named %q: each needs a name of its own", t, t.Name())
		}
	}
	op.transforms = slices.Clone(ts)
	return nil
}

// seal applies the operation's transforms to the plain form of an outcome, and
// closes it.
func (c *call) seal(plain []byte) ([]byte, error) {
	if len(c.op.transforms) == 0 {
		return envelope.Close(plain), nil
	}
	data, names := plain, make([]string, 0, len(c.op.transforms))
	for _, t := range c.op.transforms {
		err := guarded(func() (err error) {
			data, err = t.Seal(nil, data, []byte(c.key.String()))
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("the transform %q: %w", t.Name(), err)
		}
		names = append(names, t.Name())
	}
	return envelope.Close(append(envelope.AppendTransformed(nil, names), data...)), nil
}

// open reads a stored outcome, undoing what was applied to it.
func (c *call) open(stored []byte) (envelope.Outcome, error) {
	data, err := envelope.Open(stored)
	if err != nil {
		return envelope.Outcome{}, err
	}
	o, err := envelope.Parse(data)
	if err != nil || o.Transforms == nil {
		return o, err
	}
	data = o.Payload
	for _, name := range slices.Backward(o.Transforms) {
		i := slices.IndexFunc(c.op.transforms, func(t codec.Transform) bool { return t.Name() == name })
		if i < 0 {
			return o, fmt.Errorf("stored with the transform %q: add it to WithTransforms", name)
		}
		err = guarded(func() (err error) {
			data, err = c.op.transforms[i].Open(nil, data, []byte(c.key.String()))
			return err
		})
		if err != nil {
			return o, fmt.Errorf("the transform %q: %w", name, err)
		}
	}
	if o, err = envelope.Parse(data); err == nil && o.Transforms != nil {
		err = errors.New("transformed twice")
	}
	return o, err
}
