package idem

import (
	"context"
	"log/slog"
	"time"
)

// Info is what is known of a call.
type Info struct {
	Operation   Alias
	Key         string    // as the caller gave it
	Fence       int64     // of the claim that ran, or of the record that answered; 0: none
	Attempt     int       // which run of the key's generation, from 1; 0: none
	Replayed    bool      // the answer was stored before
	Recorded    bool      // the answer is stored: a duplicate will have it
	CompletedAt time.Time // when the answer was recorded, by the store's clock; zero: it was not
}

// Observer watches calls. Functions that are nil are skipped. They run on the
// call's own goroutine and should not block. Notice is also called on the heartbeat's
// goroutine, where nothing above it can recover: a panic there ends the process.
type Observer struct {
	// Begin is called before the store is asked. The context that it returns
	// goes to the function.
	Begin func(ctx context.Context, info Info) context.Context
	// Notice is called for what a call met on its way.
	Notice func(ctx context.Context, n Notice)
	// End is called once for each Begin, with the error that the call returns;
	// after a panic or runtime.Goexit of the function the error is nil.
	End func(ctx context.Context, info Info, err error, took time.Duration)
}

// NoticeKind is what a [Notice] is about.
type NoticeKind uint8

// The kinds of notices.
const (
	NoticeWaiting     NoticeKind = 1 // another call runs the key; this one waits
	NoticeTakeover    NoticeKind = 2 // the owner before did not come back within its lease
	NoticeLeaseLost   NoticeKind = 3 // the lease ended while the function ran
	NoticeNotRecorded NoticeKind = 4 // the outcome could not be stored, or the key not be given back
	NoticeFailedOpen  NoticeKind = 5 // the function runs although the store could not be asked
	NoticeRetry       NoticeKind = 6 // a step against the store failed and is tried again
)

// String returns the kind as a short phrase.
func (k NoticeKind) String() string {
	switch k {
	case NoticeWaiting:
		return "waiting"
	case NoticeTakeover:
		return "takeover"
	case NoticeLeaseLost:
		return "lease lost"
	case NoticeNotRecorded:
		return "outcome not recorded"
	case NoticeFailedOpen:
		return "failed open"
	case NoticeRetry:
		return "retry"
	default:
		return "notice"
	}
}

// Notice is something that a call met on its way.
type Notice struct {
	Kind NoticeKind
	Info Info
	Err  error // may be nil
}

func (c *call) notify(ctx context.Context, kind NoticeKind, err error) {
	c.tell(ctx, Notice{Kind: kind, Info: c.info, Err: err})
}

// tell tells the observer; what somebody may have to act on is logged too.
func (c *call) tell(ctx context.Context, n Notice) {
	if c.set.observer.Notice != nil {
		c.set.observer.Notice(ctx, n)
	}
	if n.Kind != NoticeLeaseLost && n.Kind != NoticeNotRecorded && n.Kind != NoticeFailedOpen {
		return
	}
	attrs := []slog.Attr{
		slog.String("operation", string(c.op.alias)),
		slog.String("key", quoteShort(n.Info.Key)),
		slog.Int64("fence", n.Info.Fence),
	}
	if n.Err != nil {
		attrs = append(attrs, slog.String("error", n.Err.Error()))
	}
	c.op.log().LogAttrs(ctx, slog.LevelWarn, "idem: "+n.Kind.String(), attrs...)
}
