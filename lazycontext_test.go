package idem

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

var errCause = errors.New("cause")

func TestLazyContextKeepsTheCauseOfItsEnd(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]func(context.Context){
		"nobody looked": func(context.Context) {},
		"Done":          func(ctx context.Context) { ctx.Done() },
		"a child":       func(ctx context.Context) { _, cancel := context.WithCancel(ctx); defer cancel() },
	} {
		c := &lazyContext{parent: t.Context()}
		look(c)
		if c.Err() != nil || context.Cause(c) != nil {
			t.Errorf("%s: it has ended: %v, %v", name, c.Err(), context.Cause(c))
		}
		c.end(errCause)
		child, cancel := context.WithCancel(c)
		cancel()
		if context.Cause(c) != errCause || context.Cause(child) != errCause { //nolint:errorlint // the very value
			t.Errorf("%s: causes %v and %v", name, context.Cause(c), context.Cause(child))
		}
		if <-c.Done(); c.Err() != context.Canceled { //nolint:errorlint // as package context has it
			t.Errorf("%s: %v", name, c.Err())
		}
	}
}

func TestLazyContextKeepsTheErrorThatItEndedWith(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		before := &lazyContext{parent: parent}
		before.end(nil)
		after := &lazyContext{parent: parent}
		own := &lazyContext{parent: parent, detached: true, deadline: time.Now().Add(time.Second)}
		time.Sleep(time.Second)
		synctest.Wait()
		for want, c := range map[error]*lazyContext{context.Canceled: before, context.DeadlineExceeded: after} {
			first := c.Err()
			c.end(nil)
			last := c.Err()
			if <-c.Done(); first != want || last != want || c.Err() != want { //nolint:errorlint // as package context has it
				t.Errorf("%v, %v and %v; want %v throughout", first, last, c.Err(), want)
			}
		}
		if own.Err() != context.DeadlineExceeded { //nolint:errorlint // as package context has it
			t.Error(own.Err())
		}
		if own.end(nil); own.Err() != context.DeadlineExceeded { //nolint:errorlint // as package context has it
			t.Error("after its end:", own.Err())
		}
	})
}
