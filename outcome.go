package idem

import (
	"fmt"
	"strings"
	"sync"

	"github.com/idem-go/idem/internal/envelope"
)

// maxShortText is what is kept of a failure's text where the whole has no room.
const maxShortText = 256

// maxScratch is the largest buffer that is kept for another call.
const maxScratch = 64 << 10

// scratch holds buffers to encode into, so that what is stored has no spare capacity.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// encode returns the stored form of how the run ended: of failure, or of the
// call's value if that is nil. What cannot be kept is left out.
func (c *call) encode(failure error) []byte {
	if failure != nil {
		return c.encodeFailure(failure)
	}
	if c.omit {
		return c.encodeOmitted()
	}
	outcome, err := c.encodeTarget(c.typ.name, c.work.target())
	if err != nil {
		c.notify(c.run, NoticeNotRecorded, fmt.Errorf("the result cannot be encoded, only its success is recorded: %w", err))
		return c.encodeOmitted()
	}
	return outcome
}

// encodeTarget returns the stored form of the value that target points to.
func (c *call) encodeTarget(typ string, target any) ([]byte, error) {
	buf := scratch.Get().(*[]byte) //nolint:forcetypeassert // nothing else is stored
	defer scratch.Put(buf)
	head := envelope.AppendHeader((*buf)[:0], envelope.Value, c.set.codec.Name(), typ, "")
	var full []byte
	err := guarded(func() (err error) {
		full, err = c.set.codec.Append(head, target)
		return err
	})
	if err != nil {
		return nil, err
	}
	if cap(full) <= maxScratch {
		*buf = full
	}
	if len(full)-len(head) > c.op.maxResult {
		return c.encodeOmitted(), nil
	}
	outcome, err := c.seal(append(make([]byte, 0, len(full)+envelope.SumSize), full...))
	if err == nil && c.tooLarge(len(outcome)) {
		return c.encodeOmitted(), nil
	}
	return outcome, err
}

// encodeOmitted returns the stored form of a success without its value. It has
// nothing to hide, so it need not be sealed where that fails.
func (c *call) encodeOmitted() []byte {
	c.omit = true
	plain := envelope.AppendHeader(nil, envelope.Omitted, "", "", "")
	if sealed, err := c.seal(plain); err == nil {
		return sealed
	}
	return envelope.Close(plain)
}

// encodeFailure returns the stored form of a failure: its text, and the errors
// in it that the operation names.
func (c *call) encodeFailure(failure error) []byte {
	text, first, rest := "", "", []byte(nil)
	if !c.op.withoutText {
		text = strings.ToValidUTF8(textOf(failure), "\uFFFD")
	}
	if named := c.op.named(failure); len(named) > 0 {
		first = named[0].as.name
		rest = appendNamed(nil, c.set.codec, named)
	}
	if n := len(text) + len(rest); c.omit || n > c.op.maxResult || c.tooLarge(n+maxShortText) {
		rest = nil
		if len(text) > maxShortText {
			text = strings.ToValidUTF8(text[:maxShortText], "") + "…"
		}
	}
	sealed, err := c.seal(append(envelope.AppendHeader(nil, envelope.Failure, c.set.codec.Name(), first, text), rest...))
	if err != nil {
		c.notify(c.run, NoticeNotRecorded, fmt.Errorf("the failure cannot be sealed, only that there was one is recorded: %w", err))
		return envelope.Close(envelope.AppendHeader(nil, envelope.Failure, "", "", ""))
	}
	return sealed
}

// textOf returns the text of an error, or its type where the text panics: a
// nil pointer in an error's interface is a failure all the same.
func textOf(err error) (text string) {
	if guarded(func() error { text = err.Error(); return nil }) != nil {
		return fmt.Sprintf("%T", err)
	}
	return text
}

// guarded calls what the author of a codec, a transform or an error wrote. The function has
// run by then, and a panic of theirs must not make it run again.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}

// tooLarge reports whether the driver cannot hold an outcome of n bytes.
func (c *call) tooLarge(n int) bool { return c.op.caps.MaxOutcome > 0 && n > c.op.caps.MaxOutcome }
