package idemhttp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/transports/idemhttp"
	"github.com/idem-go/idem/transports/idemhttp/internal/rules"
)

func TestRedactChangesWhatIsStoredAndNotWhatTheFirstClientGets(t *testing.T) {
	t.Parallel()
	v := onMemory.Serve(t, idemhttp.WithRedact(func(r *idemhttp.Response) {
		copy(r.Body, "****")
		r.Header["Link"][0] = "hidden"
	}))
	v.Handler = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "secret")
		_, _ = io.WriteString(w, "4242 paid")
	}
	first, again := v.Send(rules.Request{Key: "k"}), v.Send(rules.Request{Key: "k"})
	if first.Body != "4242 paid" || first.Header.Get("Link") != "secret" || again.Body != "**** paid" || again.Header.Get("Link") != "hidden" {
		t.Errorf("first %+v\nagain %+v", first, again)
	}
}

type declinedError struct{ code string }

func (e *declinedError) Error() string { return "declined: " + e.code }

func TestRenderedFailureIsReplayedAsItWas(t *testing.T) {
	t.Parallel()
	render := func(w http.ResponseWriter, _ *http.Request, err error) {
		if declined, ok := errors.AsType[*declinedError](err); ok {
			w.WriteHeader(http.StatusPaymentRequired)
			_, _ = io.WriteString(w, declined.code)
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	v := onMemory.Serve(t, idemhttp.WithFailureRenderer(render))
	v.Handler = idemhttp.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) error {
		if r.Header.Get("Idempotency-Key") == "declined" {
			return fmt.Errorf("card: %w", &declinedError{"no funds"})
		}
		return errors.New("bank is down")
	}).ServeHTTP
	for _, replayed := range []string{"", "true"} {
		a := v.Send(rules.Request{Key: "declined"})
		if a.Status != http.StatusPaymentRequired || a.Body != "no funds" || a.Header.Get("Idempotency-Replayed") != replayed {
			t.Errorf("%+v", a)
		}
	}
	for range 2 { // which is not final
		if a := v.Send(rules.Request{Key: "down"}); a.Status != http.StatusServiceUnavailable || a.Header.Get("Idempotency-Replayed") != "" {
			t.Errorf("%+v", a)
		}
	}
}

func TestWhatIsFinalCanBeChosen(t *testing.T) {
	t.Parallel()
	v := onMemory.Serve(t, idemhttp.WithFinal(func(status int) bool { return status == http.StatusServiceUnavailable }))
	v.Handler = func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(map[bool]int{true: http.StatusOK, false: http.StatusServiceUnavailable}[v.Runs.Load() < 3])
		fmt.Fprint(w, v.Runs.Load())
	}
	for i, want := range []string{"1", "2", "3", "3"} {
		if a := v.Send(rules.Request{Key: "k"}); a.Body != want {
			t.Errorf("%d: %+v, want %s", i, a, want)
		}
	}
}

func TestNamesAndLinksAreThoseThatWereConfigured(t *testing.T) {
	t.Parallel()
	v := onMemory.Serve(t,
		idemhttp.WithHeaderNames("x-request-key", "x-replayed"), idemhttp.WithDescribedBy("https://shop.example/keys"),
		idemhttp.WithStoredHeaders("x-trace"), idemhttp.WithMethods(http.MethodPost))
	v.Handler = func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Trace", "1") }
	a := v.Send(rules.Request{Key: "k"})
	a.WantProblem(t, http.StatusBadRequest, "key_missing")
	if a.Header.Get("Link") != `<https://shop.example/keys>; rel="describedby"` {
		t.Errorf("%+v", a)
	}
	key := http.Header{"X-Request-Key": {"k"}}
	v.Send(rules.Request{Header: key})
	if a := v.Send(rules.Request{Header: key}); a.Header.Get("X-Replayed") != "true" || a.Header.Get("X-Trace") != "1" || a.Header.Get("X-Request-Key") != "k" {
		t.Errorf("%+v", a)
	}
	if a := v.Send(rules.Request{Method: http.MethodPut}); a.Status != http.StatusOK {
		t.Errorf("PUT was not asked for a key: %+v", a)
	}
}

func TestChosenFingerprintTiesAKeyToPartOfARequest(t *testing.T) {
	t.Parallel()
	v := onMemory.Serve(t, idemhttp.WithFingerprint(func(_ *http.Request, body []byte) ([]byte, error) {
		amount, _, _ := bytes.Cut(body, []byte(","))
		return amount, nil
	}))
	v.Handler = func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, v.Runs.Load()) }
	v.Send(rules.Request{Key: "k", Body: "500,first try"})
	if a := v.Send(rules.Request{Key: "k", Body: "500,second try"}); a.Body != "1" {
		t.Errorf("%+v", a)
	}
	v.Send(rules.Request{Key: "k", Body: "900,third try"}).WantProblem(t, http.StatusUnprocessableEntity, "key_reused")
}

func TestMissingPrincipalIsWarnedOfOnce(t *testing.T) {
	t.Parallel()
	op, err := idem.NewOperation("payments", memory(t), idem.AtLeastOnce)
	must(t, err)
	tenant := func(*http.Request) (string, error) { return "a", nil }
	for name, opts := range map[string][]idemhttp.Option{
		"": nil, "a principal": {idemhttp.WithPrincipal(tenant)}, "none meant": {idemhttp.WithoutPrincipal()},
	} {
		var log strings.Builder
		_, err := idemhttp.New(op, append(opts, idemhttp.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))...)
		must(t, err)
		if warned := strings.Count(log.String(), "WithoutPrincipal"); (warned == 1) != (name == "") {
			t.Errorf("%q: %d warnings: %s", name, warned, log.String())
		}
	}
}

func TestClientThatLeavesIsNoFailureInTheLog(t *testing.T) {
	t.Parallel()
	op, err := idem.NewOperation("payments", memory(t), idem.AtLeastOnce)
	must(t, err)
	var log strings.Builder
	protect, err := idemhttp.New(op, idemhttp.WithoutPrincipal(), idemhttp.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/payments", strings.NewReader("500"))
	r.Header.Set("Idempotency-Key", "k")
	protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it runs") })).ServeHTTP(httptest.NewRecorder(), r)
	if log.Len() > 0 {
		t.Error(log.String())
	}
}

func TestWrongOptionsSayWhatToWrite(t *testing.T) {
	t.Parallel()
	op, err := idem.NewOperation("payments", memory(t), idem.AtLeastOnce)
	must(t, err)
	for want, o := range map[string]idemhttp.Option{
		"an option is nil: leave it out":       nil,
		`WithMethods: "GET" needs no key`:      idemhttp.WithMethods(http.MethodPost, http.MethodGet),
		"name the methods that need a key":     idemhttp.WithMethods(),
		"WithKey: nil is no option":            idemhttp.WithKey(nil),
		"a header needs a name":                idemhttp.WithHeaderNames("", "x"),
		"WithPrincipal: nil is no option":      idemhttp.WithPrincipal(nil),
		"WithFingerprint: nil is no option":    idemhttp.WithFingerprint(nil),
		"WithMaxBody(0): give a number":        idemhttp.WithMaxBody(0),
		"WithMaxResponse(-1): give a number":   idemhttp.WithMaxResponse(-1),
		"Set-Cookie is never stored":           idemhttp.WithStoredHeaders("set-cookie"),
		"Authorization is never stored":        idemhttp.WithStoredHeaders("authorization"),
		"Proxy-Authenticate is never stored":   idemhttp.WithStoredHeaders("proxy-authenticate"),
		"WithFinal: nil is no option":          idemhttp.WithFinal(nil),
		"WithRollback: nil is no option":       idemhttp.WithRollback(nil),
		"WithAuthorize: nil is no option":      idemhttp.WithAuthorize(nil),
		"WithRedact: nil is no option":         idemhttp.WithRedact(nil),
		"WithFailureRenderer: nil is no optio": idemhttp.WithFailureRenderer(nil),
		"WithLogger: nil is no option":         idemhttp.WithLogger(nil),
	} {
		if _, err := idemhttp.New(op, o); err == nil || !strings.HasPrefix(err.Error(), "idemhttp: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	if _, err := idemhttp.New(nil); err == nil || !strings.Contains(err.Error(), "idem.NewOperation") {
		t.Error(err)
	}
}
