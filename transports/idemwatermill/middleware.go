package idemwatermill

import (
	"context"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/transports/idemqueue"
)

// Metadata takes the key from the message's metadata.
func Metadata(name string) idem.KeyFunc[*message.Message] {
	return func(m *message.Message) (string, error) { return m.Metadata.Get(name), nil }
}

// UUID takes the message's UUID as its key, for producers that give a message
// which they send again the same one. Combine it with [Metadata] by [idemqueue.FirstKey].
func UUID(m *message.Message) (string, error) { return m.UUID, nil }

// delivery is a message on its way to a handler.
type delivery struct {
	*message.Message

	handler message.HandlerFunc
}

// produced is what is stored of a message that a handler wants to have published.
type produced struct {
	UUID     string
	Metadata map[string]string
	Payload  []byte
}

// Middleware returns a middleware that runs handlers once for each key, as the
// operation op; use one operation (or idem.WithScope) for each handler, since
// two handlers of one topic see the same keys. The message's context carries
// the run: [idem.FromContext] and the transaction of an ExactlyOnce run. opts
// override its defaults: idem.PolicyRelease on AtLeastOnce, and to wait for [idem.DefaultLeaseTTL]
// where a message is in progress, since Watermill cannot delay a redelivery.
func Middleware(op *idem.Operation, key idem.KeyFunc[*message.Message], opts ...idem.WrapOption) (message.HandlerMiddleware, error) {
	if key == nil {
		return nil, &idem.Error{Reason: idem.ErrConfig, Detail: "idemwatermill: the key function is nil: use Metadata"}
	}
	process, err := idemqueue.Processor(op,
		func(d delivery) (string, error) { return key(d.Message) },
		func(ctx context.Context, d delivery) ([]produced, error) { return d.handle(ctx) },
		append([]idem.WrapOption{idem.WithWait(idem.DefaultLeaseTTL)}, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("idemwatermill: %w", err)
	}
	return func(h message.HandlerFunc) message.HandlerFunc {
		return func(m *message.Message) ([]*message.Message, error) {
			out, d := process(m.Context(), delivery{m, h})
			switch d.Action {
			case idemqueue.Ack:
				return messages(out), nil
			case idemqueue.DeadLetter:
				return nil, &deadLetterError{d.Err}
			case idemqueue.Retry:
			}
			return nil, d.Err
		}
	}, nil
}

// handle runs the handler with the run's context in the message.
func (d delivery) handle(ctx context.Context) ([]produced, error) {
	before := d.Context()
	d.SetContext(ctx)
	defer d.SetContext(before)
	msgs, err := d.handler(d.Message)
	if err != nil {
		return nil, err
	}
	out := make([]produced, 0, len(msgs))
	for _, m := range msgs {
		out = append(out, produced{m.UUID, m.Metadata, m.Payload})
	}
	return out, nil
}

// messages makes the messages that are to be published.
func messages(out []produced) []*message.Message {
	msgs := make([]*message.Message, 0, len(out))
	for _, p := range out {
		m := message.NewMessage(p.UUID, p.Payload)
		for k, v := range p.Metadata {
			m.Metadata.Set(k, v)
		}
		msgs = append(msgs, m)
	}
	return msgs
}

// deadLetterError is the error of a message that nobody can handle as it is.
type deadLetterError struct{ error }

func (e *deadLetterError) Unwrap() error { return e.error }

// IsDeadLetter reports whether err says that delivering the message again is
// of no use: for middleware.PoisonQueueWithFilter, put outside of [Middleware].
func IsDeadLetter(err error) bool {
	_, ok := errors.AsType[*deadLetterError](err)
	return ok
}
