package idemgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	"github.com/idem-go/idem/transports/idemgrpc"
)

// TestRules is the table of CASES G over each store and guarantee.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, st := range stores {
		for _, g := range st.guarantees {
			t.Run(fmt.Sprintf("%s/%v", st.name, g), func(t *testing.T) {
				t.Parallel()
				for name, rule := range rules {
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						rule(t, st.open(t), g)
					})
				}
			})
		}
	}
}

var rules = map[string]func(t *testing.T, d driver.Driver, g idem.Guarantee){
	"a duplicate gets the stored message": func(t *testing.T, d driver.Driver, g idem.Guarantee) {
		t.Helper()
		s := serve(t, operation(t, d, g))
		s.handle = func(ctx context.Context, r *pb.SimpleRequest) (*pb.SimpleResponse, error) {
			if a, ok := idem.FromContext(ctx); !ok || a.Key() != "k" {
				t.Error("the handler is in no run")
			}
			return response(string(r.GetPayload().GetBody()) + "\x00\xff"), nil
		}
		first, again := s.call("k", "500"), s.call("k", "500")
		if first.body != "500\x00\xff" || !proto.Equal(first.message, again.message) || first.replayed || !again.replayed || s.runs.Load() != 1 {
			t.Errorf("first %+v\nagain %+v, %d runs", first, again, s.runs.Load())
		}
	},
	"an empty message is an answer": func(t *testing.T, d driver.Driver, g idem.Guarantee) {
		t.Helper()
		s := serve(t, operation(t, d, g))
		s.handle = func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) { return &pb.SimpleResponse{}, nil }
		first, again := s.call("k", ""), s.call("k", "")
		if first.status.Code() != codes.OK || again.status.Code() != codes.OK || !again.replayed || s.runs.Load() != 1 {
			t.Errorf("first %+v\nagain %+v", first, again)
		}
	},
	"a status replays with code, message and details": func(t *testing.T, d driver.Driver, g idem.Guarantee) {
		t.Helper()
		s := serve(t, operation(t, d, g), idemgrpc.WithRollback(isInternal))
		declined, err := status.New(codes.FailedPrecondition, "the card is declined: ä").WithDetails(
			&errdetails.PreconditionFailure{Violations: []*errdetails.PreconditionFailure_Violation{{Type: "CARD", Subject: "4242", Description: "declined"}}},
			&pb.Payload{Body: []byte{0, 255}})
		must(t, err)
		s.handle = func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
			return nil, fmt.Errorf("wrapped: %w", declined.Err())
		}
		first, again := s.call("k", "500"), s.call("k", "500")
		if !proto.Equal(first.status.Proto(), again.status.Proto()) || len(again.status.Details()) != 2 || again.status.Code() != codes.FailedPrecondition ||
			!again.replayed || first.replayed || s.runs.Load() != 1 {
			t.Errorf("first %+v\nagain %+v, %d runs", first.status, again.status, s.runs.Load())
		}
	},
	"what is passing is not stored": func(t *testing.T, d driver.Driver, g idem.Guarantee) {
		t.Helper()
		s := serve(t, operation(t, d, g))
		for _, code := range []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Internal, codes.Aborted, codes.ResourceExhausted, codes.Unknown} {
			s.runs.Store(0)
			s.handle = func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
				if s.runs.Load() == 1 {
					return nil, status.Error(code, "at first")
				}
				return response(s.runs.Load()), nil
			}
			first, again := s.call(code.String(), "500"), s.call(code.String(), "500")
			want := codes.OK
			if g == idem.AtMostOnce { // it never runs again: what it answered is its answer
				want = code
			}
			if first.status.Code() != code || first.status.Message() != "at first" || again.status.Code() != want || again.replayed != (g == idem.AtMostOnce) {
				t.Errorf("%v: first %+v\nagain %+v", code, first, again)
			}
		}
	},
	"an error without a status is what gRPC makes of it": func(t *testing.T, d driver.Driver, g idem.Guarantee) {
		t.Helper()
		s := serve(t, operation(t, d, g))
		for key, err := range map[string]error{
			"Unknown": errors.New("text"), "DeadlineExceeded": context.DeadlineExceeded, "Canceled": context.Canceled,
			"Aborted":            &idem.Error{Reason: idem.ErrInProgress, RetryAfter: time.Second, Detail: "secret"},
			"FailedPrecondition": &idem.Error{Reason: idem.ErrOutcomeUnknown, Final: true, Detail: "secret"},
		} {
			s.handle = func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) { return nil, err }
			if a := s.call(key, "500"); a.status.Code().String() != key || strings.Contains(a.status.String(), "secret") {
				t.Errorf("%v: %v", err, a.status)
			}
		}
	},
	"in flight, another payload": func(t *testing.T, d driver.Driver, g idem.Guarantee) {
		t.Helper()
		s := serve(t, operation(t, d, g))
		entered, leave := make(chan struct{}), make(chan struct{})
		s.handle = func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
			close(entered)
			<-leave
			return response("done"), nil
		}
		over := make(chan answer)
		go func() { over <- s.callIn(context.Background(), s.client.UnaryCall, "k", "500") }()
		<-entered
		reason := idemgrpc.InProgress
		if g == idem.AtMostOnce {
			reason = idemgrpc.OutcomePending
		}
		s.call("k", "500").wantProblem(t, codes.Aborted, reason, true)
		s.call("k", "900").wantProblem(t, codes.FailedPrecondition, idemgrpc.KeyReused, false)
		close(leave)
		if a := <-over; a.body != "done" {
			t.Errorf("%+v", a)
		}
		s.call("k", "900").wantProblem(t, codes.FailedPrecondition, idemgrpc.KeyReused, false)
		if a := s.call("k", "500"); a.body != "done" || !a.replayed {
			t.Errorf("%+v", a)
		}
	},
	"no key, a bad one": func(t *testing.T, d driver.Driver, g idem.Guarantee) {
		t.Helper()
		s := serve(t, operation(t, d, g))
		s.call("", "500").wantProblem(t, codes.InvalidArgument, idemgrpc.KeyMissing, false)
		s.call("a", "500", idemgrpc.KeyEntry, "a").wantProblem(t, codes.InvalidArgument, idemgrpc.KeyInvalid, false)
		for _, key := range []string{" ", "   ", strings.Repeat("k", 256)} {
			s.call(key, "500").wantProblem(t, codes.InvalidArgument, idemgrpc.KeyInvalid, false)
		}
		if s.runs.Load() != 0 {
			t.Error(s.runs.Load(), "runs")
		}
	},
	"an answer over the limit": func(t *testing.T, d driver.Driver, g idem.Guarantee) {
		t.Helper()
		s := serve(t, operation(t, d, g, idem.WithMaxResultSize(1000)))
		s.handle = func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
			return response(strings.Repeat("x", 5000)), nil
		}
		if first := s.call("k", "500"); len(first.body) != 5000 {
			t.Errorf("%+v", first.status)
		}
		s.call("k", "500").wantProblem(t, codes.AlreadyExists, idemgrpc.ResponseOmitted, false)
		if s.runs.Load() != 1 {
			t.Error(s.runs.Load(), "runs")
		}
	},
	"an outcome that has expired": func(t *testing.T, d driver.Driver, g idem.Guarantee) {
		t.Helper()
		s := serve(t, operation(t, d, g, idem.WithRetention(5*time.Millisecond), idem.WithTombstone(time.Hour)))
		s.handle = func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) { return response("done"), nil }
		a := s.call("k", "500")
		for a.status.Code() == codes.OK { // until it has expired
			a = s.call("k", "500")
		}
		a.wantProblem(t, codes.AlreadyExists, idemgrpc.KeyExpired, false)
		if s.runs.Load() != 1 {
			t.Error(s.runs.Load(), "runs")
		}
	},
	"a client that goes away": func(t *testing.T, d driver.Driver, g idem.Guarantee) {
		t.Helper()
		s := serve(t, operation(t, d, g, idem.WithWait(time.Minute)))
		ctx, cancel := context.WithCancel(t.Context())
		s.handle = func(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
			cancel()
			<-ctx.Done()
			return response("done"), nil
		}
		s.callIn(ctx, s.client.UnaryCall, "k", "500")
		if a := s.call("k", "500"); a.body != "done" || !a.replayed {
			t.Errorf("%+v", a)
		}
	},
	"a panic": func(t *testing.T, d driver.Driver, g idem.Guarantee) {
		t.Helper()
		s := serve(t, operation(t, d, g))
		s.handle = func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
			if s.runs.Load() == 1 {
				panic("bug")
			}
			return response("done"), nil
		}
		if a := s.call("k", "500"); a.status.Message() != "recovered bug" {
			t.Errorf("the panic did not go on: %+v", a)
		}
		a := s.call("k", "500")
		if g == idem.AtMostOnce {
			a.wantProblem(t, codes.FailedPrecondition, idemgrpc.OutcomeUnknown, false)
		} else if a.body != "done" {
			t.Errorf("the retry did not run at once: %+v", a)
		}
	},
	"K6 two methods, two principals, one key": func(t *testing.T, d driver.Driver, g idem.Guarantee) {
		t.Helper()
		s := serve(t, operation(t, d, g), idemgrpc.WithPrincipal(tenant))
		s.handle = func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
			return response(s.runs.Load()), nil
		}
		for range 2 {
			n := 0
			for _, m := range []method{s.client.UnaryCall, s.client.CacheableUnaryCall} {
				for _, tenant := range []string{"a", "b"} {
					n++
					if a := s.callIn(t.Context(), m, "k", "500", "tenant", tenant); a.body != strconv.Itoa(n) {
						t.Errorf("%+v, want %d", a, n)
					}
				}
			}
		}
		s.call("k", "500").wantProblem(t, codes.PermissionDenied, idemgrpc.Forbidden, false)
		if a := s.call("k", "500", "tenant", "stranger"); a.status.Code() != codes.Unauthenticated {
			t.Errorf("%+v", a.status)
		}
	},
	"a method that is not protected": func(t *testing.T, d driver.Driver, g idem.Guarantee) {
		t.Helper()
		s := serve(t, operation(t, d, g))
		for want := range 3 {
			_, err := s.client.EmptyCall(metadata.AppendToOutgoingContext(t.Context(), idemgrpc.KeyEntry, "k"), &pb.Empty{})
			if must(t, err); s.runs.Load() != int64(want+1) {
				t.Error(s.runs.Load(), "runs")
			}
		}
	},
}

func isInternal(c codes.Code) bool { return c == codes.Internal }

func tenant(ctx context.Context) (string, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	switch got := md.Get("tenant"); {
	case len(got) == 0:
		return "", nil
	case got[0] == "stranger":
		return "", status.Error(codes.Unauthenticated, "who are you?")
	default:
		return got[0], nil
	}
}

type down struct{ driver.Driver }

func (down) Claim(context.Context, driver.ClaimParams) (driver.ClaimResult, error) {
	return driver.ClaimResult{}, errors.New("secret host is down")
}

func TestStoreThatIsDownIsAnsweredAndTheHandlerDoesNotRun(t *testing.T) {
	t.Parallel()
	s := serve(t, operation(t, &down{stores[0].open(t)}, idem.AtLeastOnce))
	s.call("k", "500").wantProblem(t, codes.Unavailable, idemgrpc.StoreUnavailable, true)
	if s.runs.Load() != 0 {
		t.Error(s.runs.Load(), "runs")
	}
}

func TestAnswerThatThisProgramCannotReadIsToldAndNotRunAgain(t *testing.T) {
	t.Parallel()
	d := stores[0].open(t)
	op := operation(t, d, idem.AtLeastOnce)
	for key, r := range map[string]idemgrpc.Response{
		"unknown type": {Type: "payments.v9.Receipt"}, "bad message": {Type: "grpc.testing.SimpleResponse", Message: []byte{255}},
		"bad status": {Status: []byte{255}}, "nothing": {},
	} {
		_, err := idem.Execute(t.Context(), key, func(context.Context) (idemgrpc.Response, error) { return r, nil },
			idem.On(op), idem.WithScope(unary))
		must(t, err)
		s := serve(t, op)
		s.call(key, "500").wantProblem(t, codes.Internal, idemgrpc.ResponseUnreadable, false)
		if s.runs.Load() != 0 {
			t.Error(s.runs.Load(), "runs")
		}
	}
}

func TestOptionalKeyPassesThrough(t *testing.T) {
	t.Parallel()
	s := serve(t, operation(t, stores[0].open(t), idem.AtLeastOnce), idemgrpc.WithOptionalKey())
	s.handle = func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) { return response("done"), nil }
	for range 2 {
		s.call("", "500")
	}
	if s.call("a", "500", idemgrpc.KeyEntry, "b"); s.runs.Load() != 2 {
		t.Error(s.runs.Load(), "runs")
	}
}

func TestRequestThatIsNoMessageIsRefusedBeforeItRuns(t *testing.T) {
	t.Parallel()
	protect, err := idemgrpc.UnaryServerInterceptor(map[string]*idem.Operation{unary: operation(t, stores[0].open(t), idem.AtLeastOnce)},
		idemgrpc.WithoutPrincipal(), idemgrpc.WithLogger(quiet))
	must(t, err)
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs(idemgrpc.KeyEntry, "k"))
	info := &grpc.UnaryServerInfo{FullMethod: unary}
	_, err = protect(ctx, 5, info, func(context.Context, any) (any, error) { t.Error("it ran"); return request(""), nil })
	if status.Code(err) != codes.Internal {
		t.Error(err)
	}
	for range 2 { // INTERNAL is not stored
		_, err = protect(ctx, request(""), info, func(context.Context, any) (any, error) { return 5, nil })
		if status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "int, which is no message") {
			t.Error(err)
		}
	}
}

func TestHoldKeepsAKeyWhoseAnswerIsPassing(t *testing.T) {
	t.Parallel()
	s := serve(t, operation(t, stores[0].open(t), idem.AtLeastOnce, idem.WithFailurePolicy(idem.PolicyHold)))
	s.handle = func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		return nil, status.Error(codes.Unavailable, "x")
	}
	s.call("k", "500")
	s.call("k", "500").wantProblem(t, codes.FailedPrecondition, idemgrpc.OutcomeUnknown, false)
}

// conflicting rolls the first transaction back, as a serialization failure does, and lets another call be first.
type conflicting struct {
	driver.Driver

	meanwhile func()
}

func (c *conflicting) Transact(ctx context.Context, p driver.TransactParams, fn driver.TransactFunc) (driver.TransactResult, error) {
	tx, _ := driver.As[driver.Transactor](c.Driver)
	if c.meanwhile == nil {
		return tx.Transact(ctx, p, fn)
	}
	_, err := tx.Transact(ctx, p, func(ctx context.Context, r driver.ClaimResult) (driver.CompleteParams, error) {
		_, err := fn(ctx, r)
		return driver.CompleteParams{}, errors.Join(err, errors.New("rolled back"))
	})
	c.meanwhile()
	c.meanwhile = nil
	return driver.TransactResult{}, errors.Join(driver.ErrConflict, err)
}

func TestAnswerOfARunThatWasRolledBackIsNotSent(t *testing.T) {
	t.Parallel()
	sqlite := stores[1].open(t)
	other := serve(t, operation(t, sqlite, idem.ExactlyOnce))
	other.handle = func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		return response("the other's"), nil
	}
	s := serve(t, operation(t, &conflicting{sqlite, func() { other.call("k", "500") }}, idem.ExactlyOnce))
	s.handle = func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		return response("rolled back"), nil
	}
	if a := s.call("k", "500"); a.body != "the other's" || !a.replayed || s.runs.Load() != 1 {
		t.Errorf("%+v, %d runs", a, s.runs.Load())
	}
}
