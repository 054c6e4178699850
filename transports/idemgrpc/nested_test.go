package idemgrpc_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	"github.com/idem-go/idem/transports/idemgrpc"
	"github.com/idem-go/idem/transports/idemhttp"
)

// unanswered answers a request whose nested call has no answer. A status of 5xx is not final: the
// request's key is free for the retry.
func unanswered(w http.ResponseWriter, _ *http.Request, err error) {
	var e *idem.Error
	if !errors.As(err, &e) || !e.Retryable() {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	w.Header().Set("Retry-After", strconv.Itoa(int(max(e.RetryAfter.Seconds(), 1))))
	w.WriteHeader(http.StatusServiceUnavailable)
}

// TestRequestWhoseNestedCallIsInProgressIsToldToComeBack has an HTTP handler make a gRPC call whose key is
// locked: on a lease the request's key is free again, on an inbox everything is rolled back, on a guard the
// answer stays (DESIGN rules 16 and 17).
func TestRequestWhoseNestedCallIsInProgressIsToldToComeBack(t *testing.T) {
	t.Parallel()
	for _, st := range stores {
		for _, g := range st.guarantees {
			t.Run(st.name+"/"+g.String(), func(t *testing.T) {
				t.Parallel()
				inner := serveOn(t, "127.0.0.1:0", operation(t, stores[0].open(t), idem.AtLeastOnce), dialOptions())
				entered, leave := make(chan struct{}), make(chan struct{})
				inner.handle = func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
					close(entered)
					<-leave
					return response("charged"), nil
				}
				ctx := metadata.AppendToOutgoingContext(t.Context(), idemgrpc.KeyEntry, "charge-1")
				over := make(chan error, 1)
				go func() { _, err := inner.client.UnaryCall(ctx, request("500")); over <- err }()
				<-entered

				order := orders(t, st.open(t), g, inner.client)
				first := order("order-1")
				if first.status != http.StatusServiceUnavailable || first.header.Get("Retry-After") == "" {
					t.Errorf("%+v", first)
				}
				close(leave)
				must(t, <-over)
				again := order("order-1")
				want := reply{status: http.StatusOK, body: "charged"}
				if g == idem.AtMostOnce {
					want = reply{status: http.StatusServiceUnavailable}
				}
				if replayed := again.header.Get("Idempotency-Replayed") == "true"; again.status != want.status || again.body != want.body ||
					replayed != (g == idem.AtMostOnce) {
					t.Errorf("%+v", again)
				}
				if inner.runs.Load() != 1 {
					t.Error(inner.runs.Load(), "runs")
				}
			})
		}
	}
}

type reply struct {
	status int
	header http.Header
	body   string
}

// orders serves POST / on a socket: it charges by gRPC.
func orders(t *testing.T, d driver.Driver, g idem.Guarantee, charge pb.TestServiceClient) func(key string) reply {
	t.Helper()
	protect, err := idemhttp.New(operation(t, d, g), idemhttp.WithoutPrincipal(), idemhttp.WithFailureRenderer(unanswered))
	must(t, err)
	server := httptest.NewServer(protect(idemhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		res, err := charge.UnaryCall(metadata.AppendToOutgoingContext(r.Context(), idemgrpc.KeyEntry, "charge-1"), request("500"))
		if err != nil {
			return err
		}
		_, err = w.Write(res.GetPayload().GetBody())
		return err
	})))
	t.Cleanup(server.Close)
	return func(key string) reply {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("{}"))
		must(t, err)
		r.Header.Set("Idempotency-Key", key)
		res, err := server.Client().Do(r)
		must(t, err)
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		must(t, err)
		return reply{res.StatusCode, res.Header, string(body)}
	}
}
