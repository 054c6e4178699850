package idemconnect_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/proto"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/codec"
	"github.com/idem-go/idem/driver"
	"github.com/idem-go/idem/transports/idemconnect"
)

// TestRules is the table of CASES G over each store and guarantee, by each protocol.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, st := range stores {
		for _, g := range st.guarantees {
			for protocol := range protocols {
				if protocol != "connect" && st.name != "memory" {
					continue // the protocol is above the store
				}
				t.Run(fmt.Sprintf("%s/%v/%s", st.name, g, protocol), func(t *testing.T) {
					t.Parallel()
					for name, rule := range rules {
						t.Run(name, func(t *testing.T) {
							t.Parallel()
							rule(t, st.open(t), g, protocol)
						})
					}
				})
			}
		}
	}
}

var rules = map[string]func(t *testing.T, d driver.Driver, g idem.Guarantee, protocol string){
	"a duplicate gets the stored message": func(t *testing.T, d driver.Driver, g idem.Guarantee, protocol string) {
		t.Helper()
		s := serve(t, operation(t, d, g), protocol)
		s.handle = func(ctx context.Context, r *connect.Request[pb.SimpleRequest]) (*connect.Response[pb.SimpleResponse], error) {
			if a, ok := idem.FromContext(ctx); !ok || a.Key() != "k" {
				t.Error("the handler is in no run")
			}
			return response(string(r.Msg.GetPayload().GetBody()) + "\x00\xff"), nil
		}
		first, again := s.call("k", "500"), s.call("k", "500")
		if first.body != "500\x00\xff" || !proto.Equal(first.message, again.message) || first.replayed || !again.replayed || s.runs.Load() != 1 {
			t.Errorf("first %+v\nagain %+v, %d runs", first, again, s.runs.Load())
		}
	},
	"an error replays with code, message and details": func(t *testing.T, d driver.Driver, g idem.Guarantee, protocol string) {
		t.Helper()
		s := serve(t, operation(t, d, g), protocol, idemconnect.WithRollback(func(c connect.Code) bool { return c == connect.CodeInternal }))
		declined := connect.NewError(connect.CodeFailedPrecondition, errors.New("the card is declined: ä"))
		for _, m := range []proto.Message{&errdetails.BadRequest{}, &pb.Payload{Body: []byte{0, 255}}} {
			detail, err := connect.NewErrorDetail(m)
			must(t, err)
			declined.AddDetail(detail)
		}
		s.handle = func(context.Context, *connect.Request[pb.SimpleRequest]) (*connect.Response[pb.SimpleResponse], error) {
			return nil, fmt.Errorf("wrapped: %w", declined)
		}
		first, again := s.call("k", "500"), s.call("k", "500")
		if first.code() != connect.CodeFailedPrecondition || again.code() != first.code() || again.err.Message() != first.err.Message() ||
			len(again.err.Details()) != 2 || len(first.err.Details()) != 2 || !again.replayed || first.replayed || s.runs.Load() != 1 {
			t.Fatalf("first %+v\nagain %+v, %d runs", first, again, s.runs.Load())
		}
		for i, d := range again.err.Details() {
			one, err := first.err.Details()[i].Value()
			must(t, err)
			two, err := d.Value()
			if must(t, err); !proto.Equal(one, two) {
				t.Errorf("%v, then %v", one, two)
			}
		}
	},
	"what is passing is not stored": func(t *testing.T, d driver.Driver, g idem.Guarantee, protocol string) {
		t.Helper()
		s := serve(t, operation(t, d, g), protocol)
		for _, code := range []connect.Code{connect.CodeUnavailable, connect.CodeDeadlineExceeded, connect.CodeInternal, connect.CodeAborted} {
			s.runs.Store(0)
			s.handle = func(context.Context, *connect.Request[pb.SimpleRequest]) (*connect.Response[pb.SimpleResponse], error) {
				if s.runs.Load() == 1 {
					return nil, connect.NewError(code, errors.New("at first"))
				}
				return response(s.runs.Load()), nil
			}
			first, again := s.call(code.String(), "500"), s.call(code.String(), "500")
			want := connect.Code(0)
			if g == idem.AtMostOnce { // it never runs again: what it answered is its answer
				want = code
			}
			if first.code() != code || first.err.Message() != "at first" || again.code() != want || again.replayed != (g == idem.AtMostOnce) {
				t.Errorf("%v: first %+v\nagain %+v", code, first, again)
			}
		}
	},
	"an error without a code": func(t *testing.T, d driver.Driver, g idem.Guarantee, protocol string) {
		t.Helper()
		s := serve(t, operation(t, d, g), protocol)
		for key, err := range map[string]error{
			"unknown": errors.New("text"), "deadline_exceeded": context.DeadlineExceeded, "canceled": context.Canceled,
			"aborted":             &idem.Error{Reason: idem.ErrInProgress, RetryAfter: time.Second, Detail: "secret"},
			"failed_precondition": &idem.Error{Reason: idem.ErrOutcomeUnknown, Final: true, Detail: "secret"},
		} {
			s.handle = func(context.Context, *connect.Request[pb.SimpleRequest]) (*connect.Response[pb.SimpleResponse], error) {
				return nil, err
			}
			if a := s.call(key, "500"); a.code().String() != key || strings.Contains(a.err.Error(), "secret") {
				t.Errorf("%v: %v", err, a.err)
			}
		}
	},
	"in flight, another payload": func(t *testing.T, d driver.Driver, g idem.Guarantee, protocol string) {
		t.Helper()
		s := serve(t, operation(t, d, g), protocol)
		entered, leave := make(chan struct{}), make(chan struct{})
		s.handle = func(context.Context, *connect.Request[pb.SimpleRequest]) (*connect.Response[pb.SimpleResponse], error) {
			close(entered)
			<-leave
			return response("done"), nil
		}
		over := make(chan answer)
		go func() { over <- s.callTo(context.Background(), s.to(unary), "500", idemconnect.KeyHeader, "k") }()
		<-entered
		reason := idemconnect.InProgress
		if g == idem.AtMostOnce {
			reason = idemconnect.OutcomePending
		}
		s.call("k", "500").wantProblem(t, connect.CodeAborted, reason, true)
		s.call("k", "900").wantProblem(t, connect.CodeFailedPrecondition, idemconnect.KeyReused, false)
		close(leave)
		if a := <-over; a.body != "done" {
			t.Errorf("%+v", a)
		}
		if a := s.call("k", "500"); a.body != "done" || !a.replayed {
			t.Errorf("%+v", a)
		}
	},
	"no key, a bad one": func(t *testing.T, d driver.Driver, g idem.Guarantee, protocol string) {
		t.Helper()
		s := serve(t, operation(t, d, g), protocol)
		s.call("", "500").wantProblem(t, connect.CodeInvalidArgument, idemconnect.KeyMissing, false)
		s.callTo(t.Context(), s.to(unary), "500", idemconnect.KeyHeader, "a", idemconnect.KeyHeader, "a").
			wantProblem(t, connect.CodeInvalidArgument, idemconnect.KeyInvalid, false)
		s.call(strings.Repeat("k", 256), "500").wantProblem(t, connect.CodeInvalidArgument, idemconnect.KeyInvalid, false)
		if s.runs.Load() != 0 {
			t.Error(s.runs.Load(), "runs")
		}
	},
	"an answer over the limit": func(t *testing.T, d driver.Driver, g idem.Guarantee, protocol string) {
		t.Helper()
		s := serve(t, operation(t, d, g, idem.WithMaxResultSize(1000)), protocol)
		s.handle = func(context.Context, *connect.Request[pb.SimpleRequest]) (*connect.Response[pb.SimpleResponse], error) {
			return response(strings.Repeat("x", 5000)), nil
		}
		if first := s.call("k", "500"); len(first.body) != 5000 {
			t.Errorf("%+v", first.err)
		}
		s.call("k", "500").wantProblem(t, connect.CodeAlreadyExists, idemconnect.ResponseOmitted, false)
	},
	"a panic": func(t *testing.T, d driver.Driver, g idem.Guarantee, protocol string) {
		t.Helper()
		s := serve(t, operation(t, d, g), protocol)
		s.handle = func(context.Context, *connect.Request[pb.SimpleRequest]) (*connect.Response[pb.SimpleResponse], error) {
			if s.runs.Load() == 1 {
				panic("bug")
			}
			return response("done"), nil
		}
		if a := s.call("k", "500"); a.err == nil || a.err.Message() != "recovered bug" {
			t.Errorf("the panic did not go on: %+v", a)
		}
		a := s.call("k", "500")
		if g == idem.AtMostOnce {
			a.wantProblem(t, connect.CodeFailedPrecondition, idemconnect.OutcomeUnknown, false)
		} else if a.body != "done" {
			t.Errorf("the retry did not run at once: %+v", a)
		}
	},
	"K6 two procedures, two principals, one key": func(t *testing.T, d driver.Driver, g idem.Guarantee, protocol string) {
		t.Helper()
		s := serve(t, operation(t, d, g), protocol, idemconnect.WithPrincipal(tenant))
		s.handle = func(context.Context, *connect.Request[pb.SimpleRequest]) (*connect.Response[pb.SimpleResponse], error) {
			return response(s.runs.Load()), nil
		}
		for range 2 {
			n := 0
			for _, procedure := range []string{unary, other} {
				for _, tenant := range []string{"a", "b"} {
					n++
					a := s.callTo(t.Context(), s.to(procedure), "500", idemconnect.KeyHeader, "k", "tenant", tenant)
					if a.body != strconv.Itoa(n) {
						t.Errorf("%+v, want %d", a, n)
					}
				}
			}
		}
		s.call("k", "500").wantProblem(t, connect.CodePermissionDenied, idemconnect.Forbidden, false)
		if a := s.callTo(t.Context(), s.to(unary), "500", idemconnect.KeyHeader, "k", "tenant", "stranger"); a.code() != connect.CodeUnauthenticated {
			t.Errorf("%+v", a.err)
		}
	},
	"a procedure that is not protected": func(t *testing.T, d driver.Driver, g idem.Guarantee, protocol string) {
		t.Helper()
		s := serve(t, operation(t, d, g), protocol)
		s.handle = func(context.Context, *connect.Request[pb.SimpleRequest]) (*connect.Response[pb.SimpleResponse], error) {
			return response(s.runs.Load()), nil
		}
		for want := range 3 {
			if a := s.callTo(t.Context(), s.to(bare), "500", idemconnect.KeyHeader, "k"); a.body != strconv.Itoa(want+1) {
				t.Errorf("%+v", a)
			}
		}
	},
}

func tenant(_ context.Context, r connect.AnyRequest) (string, error) {
	if r.Header().Get("Tenant") == "stranger" {
		return "", connect.NewError(connect.CodeUnauthenticated, errors.New("who are you?"))
	}
	return r.Header().Get("Tenant"), nil
}

type down struct{ driver.Driver }

func (down) Claim(context.Context, driver.ClaimParams) (driver.ClaimResult, error) {
	return driver.ClaimResult{}, errors.New("secret host is down")
}

func TestStoreThatIsDownIsAnsweredAndTheHandlerDoesNotRun(t *testing.T) {
	t.Parallel()
	s := serve(t, operation(t, &down{stores[0].open(t)}, idem.AtLeastOnce), "connect")
	s.call("k", "500").wantProblem(t, connect.CodeUnavailable, idemconnect.StoreUnavailable, true)
	if s.runs.Load() != 0 {
		t.Error(s.runs.Load(), "runs")
	}
}

func TestAnswerThatThisProgramCannotReadIsToldAndNotRunAgain(t *testing.T) {
	t.Parallel()
	op := operation(t, stores[0].open(t), idem.AtLeastOnce)
	s := serve(t, op, "connect")
	for key, r := range map[string]idemconnect.Response{
		"unknown type": {Type: "payments.v9.Receipt"}, "bad message": {Type: "grpc.testing.SimpleResponse", Message: []byte{255}},
		"bad status": {Status: []byte{255}}, "nothing": {},
	} {
		_, err := idem.Execute(t.Context(), key, func(context.Context) (idemconnect.Response, error) { return r, nil },
			idem.On(op), idem.WithScope(unary))
		must(t, err)
		s.call(key, "500").wantProblem(t, connect.CodeInternal, idemconnect.ResponseUnreadable, false)
	}
	if s.runs.Load() != 0 {
		t.Error(s.runs.Load(), "runs")
	}
}

func TestClientSendsAKeyAndFindsTheReason(t *testing.T) {
	t.Parallel()
	for protocol := range protocols {
		s := serve(t, operation(t, stores[0].open(t), idem.AtLeastOnce), protocol)
		with := s.to(unary, connect.WithInterceptors(idemconnect.ClientInterceptor()))
		var nested error
		s.handle = func(ctx context.Context, r *connect.Request[pb.SimpleRequest]) (*connect.Response[pb.SimpleResponse], error) {
			if string(r.Msg.GetPayload().GetBody()) == "outer" {
				again := connect.NewRequest(request("outer"))
				again.Header().Set(idemconnect.KeyHeader, r.Header().Get(idemconnect.KeyHeader))
				_, nested = with(ctx, again)
			}
			return response("done"), nil
		}
		for range 2 { // two calls, two keys
			if a := s.callTo(t.Context(), with, "500"); a.body != "done" || a.replayed {
				t.Errorf("%s: %+v", protocol, a)
			}
		}
		if a := s.callTo(t.Context(), with, "outer"); a.body != "done" {
			t.Errorf("%s: %+v", protocol, a)
		}
		e, ok := errors.AsType[*idem.Error](nested)
		if !errors.Is(nested, idem.ErrInProgress) || connect.CodeOf(nested) != connect.CodeAborted || !ok || !e.Retryable() || e.RetryAfter <= 0 {
			t.Errorf("%s: %v", protocol, nested)
		}
	}
}

func TestWhatCannotBeProtectedIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	op := operation(t, stores[0].open(t), idem.AtLeastOnce)
	raw := operation(t, stores[0].open(t), idem.AtLeastOnce, idem.WithCodec(codec.Raw()))
	for _, row := range []struct {
		says, procedure string
		op              *idem.Operation
		opts            []idemconnect.Option
	}{
		{"streams: there is no one request", pb.TestService_StreamingInputCall_FullMethodName, op, nil},
		{"streams: there is no one request", pb.TestService_StreamingOutputCall_FullMethodName, op, nil},
		{"there is no such procedure", "/plain.Service/Do", op, nil},
		{"there is no such procedure", "grpc.testing.TestService/UnaryCall", op, nil},
		{"there is no such procedure", "/grpc.testing.TestService", op, nil},
		{"the operation is nil", unary, nil, nil},
		{"raw codec keeps []byte", unary, raw, nil},
		{"an option is nil", unary, op, []idemconnect.Option{nil}},
		{"WithPrincipal: nil", unary, op, []idemconnect.Option{idemconnect.WithPrincipal(nil)}},
		{"WithFingerprint: nil", unary, op, []idemconnect.Option{idemconnect.WithFingerprint(nil)}},
		{"WithFinal: nil", unary, op, []idemconnect.Option{idemconnect.WithFinal(nil)}},
		{"WithRollback: nil", unary, op, []idemconnect.Option{idemconnect.WithRollback(nil)}},
		{"WithLogger: nil", unary, op, []idemconnect.Option{idemconnect.WithLogger(nil)}},
	} {
		_, err := idemconnect.Interceptor(map[string]*idem.Operation{row.procedure: row.op}, row.opts...)
		if !errors.Is(err, idem.ErrConfig) || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v does not say %q", row.procedure, err, row.says)
		}
	}
	if _, err := idemconnect.Interceptor(nil); !errors.Is(err, idem.ErrConfig) {
		t.Error(err)
	}
}

func TestOptionalKeyPassesThrough(t *testing.T) {
	t.Parallel()
	s := serve(t, operation(t, stores[0].open(t), idem.AtLeastOnce), "connect", idemconnect.WithOptionalKey())
	s.handle = func(context.Context, *connect.Request[pb.SimpleRequest]) (*connect.Response[pb.SimpleResponse], error) {
		return response("done"), nil
	}
	for range 2 {
		s.call("", "500")
	}
	if s.runs.Load() != 2 {
		t.Error(s.runs.Load(), "runs")
	}
}
