package idem_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
)

// The ends of a function, by what they are.
var ends = map[string]func() error{
	"domain":         func() error { return errDeclined },
	"infrastructure": func() error { return fmt.Errorf("dial: %w", context.DeadlineExceeded) },
	"bug":            func() error { panic("bug") },
}

func TestPolicyDecidesWhatAFailureMeans(t *testing.T) {
	t.Parallel()
	const completed, released, uncertain = driver.StateCompleted, driver.StateReleased, driver.StateUncertain
	lease := idem.AtLeastOnce
	rows := []struct {
		g      idem.Guarantee
		opts   []idem.OperationOption
		states map[string]driver.State
	}{
		{lease, nil, map[string]driver.State{"domain": completed, "infrastructure": released, "bug": released}},
		{
			lease, []idem.OperationOption{idem.WithFailurePolicy(idem.PolicyRelease)},
			map[string]driver.State{"domain": released, "infrastructure": released, "bug": released},
		},
		{
			lease, []idem.OperationOption{idem.WithFailurePolicy(idem.PolicyHold)},
			map[string]driver.State{"domain": uncertain, "infrastructure": uncertain, "bug": uncertain},
		},
		{idem.AtMostOnce, nil, map[string]driver.State{"domain": completed, "infrastructure": uncertain, "bug": uncertain}},
	}
	for _, row := range rows {
		for end, want := range row.states {
			op := newOperation(t, row.g, row.opts...)
			func() {
				defer func() { _ = recover() }()
				_ = idem.Do(t.Context(), "pay-42", func(context.Context) error { return ends[end]() }, idem.On(op))
			}()
			rec, ok, err := op.Inspect(t.Context(), "pay-42")
			if err != nil || !ok || rec.State != want {
				t.Errorf("%v %v, %s: the record is %v, %v; want %v", row.g, row.opts, end, rec.State, err, want)
			}
			runs := 0
			err = idem.Do(t.Context(), "pay-42", func(context.Context) error { runs++; return nil }, idem.On(op))
			if (runs == 1) != (want == released) {
				t.Errorf("%v, %s: %d runs after it", row.g, end, runs)
			}
			if want == uncertain {
				if e := idemError(t, err, idem.ErrOutcomeUnknown); !e.Final || e.Retryable() {
					t.Errorf("%v, %s: %+v is not final", row.g, end, e)
				}
			}
		}
	}
}

func TestHoldAndGuardAreUncertainWhenTheOwnerDies(t *testing.T) { // CASES N1, N2
	t.Parallel()
	for name, row := range map[string]struct {
		g        idem.Guarantee
		opts     []idem.OperationOption
		inFlight error
	}{
		"hold":  {idem.AtLeastOnce, []idem.OperationOption{idem.WithFailurePolicy(idem.PolicyHold)}, idem.ErrInProgress},
		"guard": {idem.AtMostOnce, nil, idem.ErrOutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store, pay := newSpy(t), new(charge)
				op := operationOn(t, store, row.g, append(row.opts, idem.WithLeaseTTL(time.Second))...)
				// An owner that dies: nothing of it reaches the store after the claim.
				claim := driver.ClaimParams{
					Key: driver.Key{Scope: "payments", ID: "pay-42"}, Token: driver.Token{1}, Lease: time.Second,
					OnLapse: driver.Uncertain, Guarantee: row.g, Retention: driver.RetainForever, Format: 1,
				}
				if _, err := store.Claim(t.Context(), claim); err != nil {
					t.Fatal(err)
				}
				_, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op))
				if e := idemError(t, err, row.inFlight); e.Final || !e.Retryable() {
					t.Fatalf("final while its lease lasts: %+v", e)
				}
				time.Sleep(time.Second + time.Millisecond)
				_, err = idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op))
				if e := idemError(t, err, idem.ErrOutcomeUnknown); !e.Final || e.Since.IsZero() || pay.runs.Load() != 0 {
					t.Fatalf("%+v, %d runs", e, pay.runs.Load())
				}
			})
		})
	}
}

func TestUnknownOutcomeSaysSinceWhenAndWhichAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		op := newOperation(t, idem.AtMostOnce)
		began := time.Now()
		err := idem.Do(t.Context(), "pay-42", func(context.Context) error {
			time.Sleep(time.Second)
			err := idem.Do(context.Background(), "pay-42", func(context.Context) error { return nil }, idem.On(op)) // from another run
			if e := idemError(t, err, idem.ErrOutcomeUnknown); e.Final || e.Attempt != 1 || !e.Since.Equal(began) {
				t.Errorf("while it runs: %+v", e)
			}
			return context.Canceled
		}, idem.On(op))
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		for attempt := 1; attempt <= 2; attempt++ {
			err := idem.Do(t.Context(), "pay-42", func(context.Context) error { return nil }, idem.On(op))
			if e := idemError(t, err, idem.ErrOutcomeUnknown); !e.Final || e.Attempt != attempt || e.Since.Before(began) {
				t.Errorf("%+v, want attempt %d since %v", e, attempt, began)
			}
			if err := op.Resolve(t.Context(), "pay-42", idem.NotRun()); err != nil {
				t.Fatal(err)
			}
			_ = idem.Do(t.Context(), "pay-42", func(context.Context) error { return context.Canceled }, idem.On(op))
		}
	})
}

func TestGuardWithoutOutcomesIsFinalAtOnce(t *testing.T) {
	t.Parallel()
	store, pay := newSpy(t), new(charge)
	op := operationOn(t, store, idem.AtMostOnce, idem.WithoutOutcomes(), idem.WithWait(time.Hour))
	if _, err := idem.Execute(t.Context(), "pay-42", func(ctx context.Context) (receipt, error) {
		_, err := idem.Execute(context.Background(), "pay-42", pay.run, idem.On(op))
		if e := idemError(t, err, idem.ErrOutcomeUnknown); !e.Final {
			t.Error("not final while it runs:", e)
		}
		return pay.run(ctx)
	}, idem.On(op)); err != nil {
		t.Fatal(err)
	}
	_, err := idem.Execute(t.Context(), "pay-42", pay.run, idem.On(op))
	if e := idemError(t, err, idem.ErrOutcomeUnknown); !e.Final || pay.runs.Load() != 1 {
		t.Fatalf("%+v, %d runs", e, pay.runs.Load())
	}
	if n := store.completed.Load() + store.released.Load() + store.renewed.Load(); n != 0 {
		t.Fatal("it takes", n, "calls of the store beside the claims")
	}
}

func TestClassifierChain(t *testing.T) {
	t.Parallel()
	say := func(kind idem.FailureKind) idem.ClassifierFunc {
		return func(error) idem.FailureKind { return kind }
	}
	rows := []struct {
		name            string
		call, operation idem.FailureKind
		err             error
		want            driver.State
	}{
		{"the call's is asked first", idem.KindInfrastructure, idem.KindDomain, errDeclined, driver.StateReleased},
		{"then the operation's", idem.KindUnknown, idem.KindInfrastructure, errDeclined, driver.StateReleased},
		{"then the default", idem.KindUnknown, idem.KindUnknown, errDeclined, driver.StateCompleted},
		{"an unknown kind asks the next", idem.FailureKind(0), idem.KindDomain, context.Canceled, driver.StateCompleted},
	}
	for _, row := range rows {
		op := newOperation(t, idem.AtLeastOnce, idem.WithClassifier(say(row.operation)))
		_ = idem.Do(t.Context(), "pay-42", func(context.Context) error { return row.err },
			idem.On(op), idem.WithClassifier(say(row.call)))
		if rec, _, _ := op.Inspect(t.Context(), "pay-42"); rec.State != row.want {
			t.Errorf("%s: the record is %v, want %v", row.name, rec.State, row.want)
		}
	}
}

type retryable bool

func (retryable) Error() string     { return "retryable" }
func (r retryable) Retryable() bool { return bool(r) }

func TestDefaultClassification(t *testing.T) {
	t.Parallel()
	_, refused := (&net.Dialer{}).DialContext(t.Context(), "tcp", "127.0.0.1:1")
	passing := []error{
		context.Canceled, context.DeadlineExceeded, os.ErrDeadlineExceeded, net.ErrClosed, io.ErrUnexpectedEOF,
		io.ErrClosedPipe, idem.ErrLeaseLost, retryable(true), refused, &net.DNSError{Err: "no such host"},
		&idem.Error{Reason: idem.ErrInProgress}, &idem.Error{Reason: idem.ErrStore},
		&idem.Error{Reason: idem.ErrOutcomeUnknown},
	}
	answers := []error{
		errDeclined, retryable(false), io.EOF, &idem.Error{Reason: idem.ErrOutcomeUnknown, Final: true},
		&idem.Error{Reason: idem.ErrMismatch}, &idem.ReplayedError{Message: "declined"},
	}
	for want, errs := range map[driver.State][]error{driver.StateReleased: passing, driver.StateCompleted: answers} {
		for _, err := range errs {
			for _, wrapped := range []error{err, fmt.Errorf("pay: %w", err), errors.Join(errors.New("other"), err)} {
				op := newOperation(t, idem.AtLeastOnce)
				_ = idem.Do(t.Context(), "pay-42", func(context.Context) error { return wrapped }, idem.On(op))
				if rec, _, _ := op.Inspect(t.Context(), "pay-42"); rec.State != want {
					t.Errorf("%T %v: the record is %v, want %v", err, wrapped, rec.State, want)
				}
			}
		}
	}
}

// The errors here answer questions about themselves in ways of their own.
type (
	agreeing  struct{ error } // says that it is anything and sets nothing
	exploding struct{ error }
	crashing  struct{ error }
)

func (agreeing) As(any) bool    { return true }
func (exploding) Is(error) bool { panic("Is") }
func (crashing) Unwrap() error  { panic("Unwrap") }

func TestErrorsThatMisbehaveAreFailuresAllTheSame(t *testing.T) {
	t.Parallel()
	broken := func(error) idem.FailureKind { panic("classifier") }
	for _, row := range []struct {
		err  error
		want driver.State
		opts []idem.OperationOption
	}{
		{agreeing{errDeclined}, driver.StateCompleted, nil},
		{exploding{errDeclined}, driver.StateReleased, nil},
		{crashing{errDeclined}, driver.StateReleased, nil},
		{crashing{errDeclined}, driver.StateReleased, replayables()},
		{errDeclined, driver.StateReleased, []idem.OperationOption{idem.WithClassifier(broken)}},
	} {
		op := newOperation(t, idem.AtLeastOnce, row.opts...)
		err := idem.Do(t.Context(), "pay-42", func(context.Context) error { return row.err }, idem.On(op))
		if rec, _, _ := op.Inspect(t.Context(), "pay-42"); rec.State != row.want || err != row.err { //nolint:errorlint // unchanged
			t.Errorf("%T: the record is %v, want %v", row.err, rec.State, row.want)
		}
	}
	guard := newOperation(t, idem.AtMostOnce, replayables()...)
	_ = idem.Do(t.Context(), "pay-42", func(context.Context) error { return context.Canceled }, idem.On(guard))
	if err := guard.Resolve(t.Context(), "pay-42", idem.Failed(crashing{errDeclined})); err != nil {
		t.Error(err)
	}
}
