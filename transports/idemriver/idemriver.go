// Package idemriver puts the rules of idemqueue under River's workers: what a
// job does happens once for each key, even if the job is inserted twice, or its worker dies after the effect.
//
//	once, err := idemriver.Middleware(orders, idemriver.Metadata("idempotency_key"))
//	client, err := river.NewClient(driver, &river.Config{Middleware: []rivertype.Middleware{once}, …})
//
//	decision    River is told
//	Ack         the job is completed
//	Retry       it is snoozed where it is in progress elsewhere, else it has failed and is tried again as River does
//	DeadLetter  it is cancelled
package idemriver

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/transports/idemqueue"
)

// Metadata takes the key from a member of the job's metadata, a string.
func Metadata(name string) idem.KeyFunc[*rivertype.JobRow] {
	return func(job *rivertype.JobRow) (string, error) { return member(job.Metadata, name) }
}

// Arg takes the key from a member of the job's arguments, a string.
func Arg(name string) idem.KeyFunc[*rivertype.JobRow] {
	return func(job *rivertype.JobRow) (string, error) { return member(job.EncodedArgs, name) }
}

func member(data []byte, name string) (key string, err error) {
	if len(data) == 0 {
		return "", nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return "", err
	}
	if value, ok := members[name]; ok {
		err = json.Unmarshal(value, &key)
	}
	return key, err
}

// work is a job and what its worker does.
type work struct {
	*rivertype.JobRow

	inner func(context.Context) error
}

// Middleware returns a middleware that runs jobs once for each key, as the
// operation op. The key space is the operation's and the kind of the job.
func Middleware(op *idem.Operation, key idem.KeyFunc[*rivertype.JobRow], opts ...idem.WrapOption) (rivertype.WorkerMiddleware, error) {
	if key == nil {
		return nil, &idem.Error{Reason: idem.ErrConfig, Detail: "idemriver: the key function is nil: use Metadata or Arg"}
	}
	handle, err := idemqueue.Handler(op,
		func(w work) (string, error) {
			k, err := key(w.JobRow)
			if k == "" || err != nil {
				return "", err
			}
			return idem.JoinKey(w.Kind, k), nil
		},
		func(ctx context.Context, w work) error { return w.inner(ctx) }, opts...)
	if err != nil {
		return nil, fmt.Errorf("idemriver: %w", err)
	}
	return river.WorkerMiddlewareFunc(func(ctx context.Context, job *rivertype.JobRow, inner func(context.Context) error) error {
		d := handle(ctx, work{job, inner})
		switch {
		case d.Action == idemqueue.Ack:
			return nil
		case d.Action == idemqueue.DeadLetter:
			return river.JobCancel(d.Err)
		case d.Delay > 0:
			return river.JobSnooze(d.Delay)
		}
		return d.Err
	}), nil
}
