package idem

import (
	"context"
	"errors"
	"fmt"
)

// nest refuses a call that would wait for the run that it is made in.
func (c *call) nest(ctx context.Context) error {
	c.outer, _ = FromContext(ctx)
	for a := c.outer; a != nil; a = a.call.outer {
		if a.call.op.base != c.op.base || a.over() {
			continue
		}
		if a.call.key == c.key {
			return errors.New("the call is made inside the run of its own key: use another key, or call the function itself")
		}
		if a.call.op.guarantee != ExactlyOnce {
			continue
		}
		if c.op.guarantee == ExactlyOnce {
			c.joins = true
		} else if c.op.caps.SingleWriter {
			return fmt.Errorf("%v inside an ExactlyOnce run of the same %s store would wait for that run to end: "+
				"use ExactlyOnce here too, or another store", c.op.guarantee, c.op.caps.Name)
		}
	}
	return nil
}
