package idemqueue

import (
	"context"
	"encoding/json"

	"github.com/idem-go/idem"
)

// entry is a message of a batch, and what its handler returned.
type entry[M any] struct {
	message M
	failure *error
}

// MarshalJSON makes the fingerprint that of the message.
func (e entry[M]) MarshalJSON() ([]byte, error) { return json.Marshal(e.message) }

// BatchHandler is [Handler] for messages that are consumed many at a time: fn is
// called once for each, and each has its own decision, in their order. Their claims and their
// completions are sent together, and fn is called for all of them at the same
// time, as [idem.WrapBatch] says. It pays where the store is far away or busy, with some tens of messages
// or more at once; a few are taken one by one.
func BatchHandler[M any](
	op *idem.Operation, key idem.KeyFunc[M], fn func(context.Context, M) error, opts ...idem.WrapOption,
) (func(context.Context, []M) []Decision, error) {
	switch {
	case fn == nil:
		return nil, errNoHandler
	case key == nil:
		return nil, &idem.Error{Reason: idem.ErrConfig, Detail: "idemqueue: the key function is nil: use KeyPath, or write one"}
	}
	wrapped, err := idem.WrapBatch(op,
		func(e entry[M]) (string, error) { return key(e.message) },
		func(ctx context.Context, e entry[M]) (struct{}, error) {
			*e.failure = fn(ctx, e.message)
			return struct{}{}, *e.failure
		}, released(op, opts)...)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, messages []M) []Decision {
		entries, failures := make([]entry[M], len(messages)), make([]error, len(messages))
		for i, m := range messages {
			entries[i] = entry[M]{m, &failures[i]}
		}
		_, errs := wrapped(ctx, entries)
		decisions := make([]Decision, len(messages))
		for i, err := range errs {
			decisions[i] = decide(op.Guarantee(), err, failures[i])
		}
		return decisions
	}, nil
}
