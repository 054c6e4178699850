package rules

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	"github.com/idem-go/idem/transports/idemhttp"
)

// Row is one line of the table of answers: what a client gets in a situation.
type Row struct {
	Situation string
	Status    int    // of a problem; 0: the handler's
	Code      string // of a problem
	Headers   []string

	only []idem.Guarantee // nil: all
	do   func(t *testing.T, s Setup) Answer
}

// created is the status of the handlers behind rows without one.
const created = http.StatusCreated

func (r Row) on(g idem.Guarantee) bool { return r.only == nil || slices.Contains(r.only, g) }

// check compares the answer with the row. Whether to come back and whether it is a replay is said if the row says so.
func (r Row) check(t *testing.T, a Answer) {
	t.Helper()
	if r.Code != "" {
		a.WantProblem(t, r.Status, r.Code)
	} else if a.Status != created {
		t.Errorf("%+v, want the handler's status", a)
	}
	for _, header := range r.Headers {
		name, value, _ := strings.Cut(header, ": ")
		if got := a.Header.Get(name); got == "" || value != "" && got != value {
			t.Errorf("%s: %q, want %q", name, got, header)
		}
	}
	for _, name := range []string{"Retry-After", "Idempotency-Replayed"} {
		listed := slices.ContainsFunc(r.Headers, func(h string) bool { return strings.HasPrefix(h, name) })
		if got := a.Header.Get(name); got != "" && !listed {
			t.Errorf("%s: %q, want none", name, got)
		}
	}
}

// String is the row as the guide has it.
func (r Row) String() string {
	status, code := "the handler's", ""
	if r.Code != "" {
		status, code = strconv.Itoa(r.Status), "`"+r.Code+"`"
	}
	headers := make([]string, len(r.Headers))
	for i, h := range r.Headers {
		headers[i] = "`" + h + "`"
	}
	cells := []string{r.Situation, status, code, strings.Join(headers, ", ")}
	return strings.ReplaceAll("| "+strings.Join(cells, " | ")+" |", "|  |", "| |")
}

var (
	notGuards = []idem.Guarantee{idem.AtLeastOnce, idem.ExactlyOnce}
	guards    = []idem.Guarantee{idem.AtMostOnce}
)

// Answers is the table of answers, which docs/http.md shows.
var Answers = []Row{
	{Situation: "first request", Headers: []string{"Idempotency-Key"}, do: func(t *testing.T, s Setup) Answer {
		t.Helper()
		return s.pay(t).Send(Request{Key: "k"})
	}},
	{
		Situation: "duplicate of a finished one", Headers: []string{"Idempotency-Key", "Idempotency-Replayed: true"},
		do: func(t *testing.T, s Setup) Answer {
			t.Helper()
			return twice(s.pay(t))
		},
	},
	{
		Situation: "the same, its body too large to store or streamed", Headers: []string{"Idempotency-Key", "Idempotency-Replayed: omitted"},
		do: func(t *testing.T, s Setup) Answer {
			t.Helper()
			return twice(s.pay(t, idemhttp.WithMaxResponse(1)))
		},
	},
	{Situation: "no key where one is needed", Status: 400, Code: "key_missing", do: func(t *testing.T, s Setup) Answer {
		t.Helper()
		return s.pay(t).Send(Request{})
	}},
	{
		Situation: "blank, over 255 bytes, not printable ASCII, two lines, a bare comma", Status: 400, Code: "key_invalid",
		do: func(t *testing.T, s Setup) Answer {
			t.Helper()
			v := s.pay(t)
			for _, lines := range [][]string{{""}, {`" "`}, {strings.Repeat("k", 256)}, {"ä"}, {"a", "a"}} {
				v.Send(Request{Header: http.Header{"Idempotency-Key": lines}}).WantProblem(t, http.StatusBadRequest, "key_invalid")
			}
			return v.Send(Request{Key: "a, a"})
		},
	},
	{Situation: "body over the limit", Status: 413, Code: "body_too_large", do: func(t *testing.T, s Setup) Answer {
		t.Helper()
		return s.pay(t, idemhttp.WithMaxBody(4)).Send(Request{Key: "k"})
	}},
	{Situation: "no principal, or `WithAuthorize` refuses the replay", Status: 403, Code: "forbidden", do: func(t *testing.T, s Setup) Answer {
		t.Helper()
		nobody := func(*http.Request) (string, error) { return "", errors.New("secret") }
		s.pay(t, idemhttp.WithPrincipal(nobody)).Send(Request{Key: "k"}).WantProblem(t, http.StatusForbidden, "forbidden")
		return twice(s.pay(t, idemhttp.WithAuthorize(func(*http.Request) error { return errors.New("secret") })))
	}},
	{
		Situation: "in flight, on a lease or an inbox", Status: 409, Code: "in_progress", Headers: []string{"Idempotency-Key", "Retry-After"},
		only: notGuards, do: duringARun,
	},
	{
		Situation: "in flight, on a guard", Status: 409, Code: "outcome_unknown", Headers: []string{"Idempotency-Key", "Retry-After"},
		only: guards, do: duringARun,
	},
	{
		Situation: "a guard whose owner never answered", Status: 409, Code: "outcome_unknown", Headers: []string{"Idempotency-Key"},
		only: guards, do: func(t *testing.T, s Setup) Answer {
			t.Helper()
			v := s.Serve(t)
			v.Handler = func(http.ResponseWriter, *http.Request) { panic("bug") }
			return twice(v)
		},
	},
	{
		Situation: "the outcome has expired (`idem.WithTombstone`)", Status: 409, Code: "key_expired", Headers: []string{"Idempotency-Key"},
		do: func(t *testing.T, s Setup) Answer {
			t.Helper()
			v := s.with(idem.WithRetention(time.Millisecond), idem.WithTombstone(time.Hour)).pay(t)
			a := twice(v)
			for began := time.Now(); a.Status == created && time.Since(began) < time.Minute; { // it is not over yet
				a = v.Send(Request{Key: "k"})
			}
			return a
		},
	},
	{
		Situation: "the outcome could not be kept", Status: 409, Code: "response_omitted", Headers: []string{"Idempotency-Key"},
		do: func(t *testing.T, s Setup) Answer {
			t.Helper()
			return twice(s.with(idem.WithMaxResultSize(1)).pay(t))
		},
	},
	{
		Situation: "another payload, in flight too (an inbox of another process: after the commit)", Status: 422, Code: "key_reused",
		Headers: []string{"Idempotency-Key"}, do: func(t *testing.T, s Setup) Answer {
			t.Helper()
			v := s.pay(t)
			v.Send(Request{Key: "k"})
			return v.Send(Request{Key: "k", Body: `{"amount":900}`})
		},
	},
	{Situation: "a `HandlerFunc` fails and there is no renderer", Status: 500, Code: "failed", do: func(t *testing.T, s Setup) Answer {
		t.Helper()
		v := s.Serve(t)
		v.Handler = idemhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return errors.New("secret") }).ServeHTTP
		return v.Send(Request{Key: "k"})
	}},
	{
		Situation: "a stored response that this program cannot read", Status: 500, Code: "response_unreadable", Headers: []string{"Idempotency-Key"},
		do: func(t *testing.T, s Setup) Answer {
			t.Helper()
			v := s.pay(t)
			_, err := idem.Execute(t.Context(), "k", func(context.Context) (string, error) { return "no response", nil },
				idem.On(v.Op), idem.WithScope("POST /payments"))
			must(t, err)
			return v.Send(Request{Key: "k"})
		},
	},
	{Situation: "the server is set up wrongly", Status: 500, Code: "misconfigured", do: func(t *testing.T, s Setup) Answer {
		t.Helper()
		broken := func(*http.Request, []byte) ([]byte, error) { return nil, errors.New("secret") }
		return s.pay(t, idemhttp.WithFingerprint(broken)).Send(Request{Key: "k"})
	}},
	{
		Situation: "the store cannot be asked; the handler did not run", Status: 503, Code: "store_unavailable",
		Headers: []string{"Idempotency-Key", "Retry-After: 1"}, do: func(t *testing.T, s Setup) Answer {
			t.Helper()
			open := s.Open
			s.Open = func(t *testing.T) driver.Driver { t.Helper(); return down{open(t)} }
			v := s.pay(t)
			a := v.Send(Request{Key: "k"})
			if v.Runs.Load() != 0 {
				t.Error(v.Runs.Load(), "runs")
			}
			return a
		},
	},
}

// pay serves a handler that answers 201.
func (s Setup) pay(t *testing.T, opts ...idemhttp.Option) *Service {
	t.Helper()
	v := s.Serve(t, append(opts, idemhttp.WithRollback(func(status int) bool { return status >= http.StatusInternalServerError }))...)
	v.Handler = func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(created)
		_, _ = w.Write([]byte("paid"))
	}
	return v
}

// twice sends a request two times, and returns the second answer.
func twice(v *Service) Answer {
	v.t.Helper()
	v.Send(Request{Key: "k"})
	return v.Send(Request{Key: "k"})
}

// duringARun sends a duplicate while the handler runs.
func duringARun(t *testing.T, s Setup) Answer {
	t.Helper()
	v := s.Serve(t)
	defer v.Begin(Request{Key: "k"})()
	return v.Send(Request{Key: "k"})
}

// down is a store that cannot be asked.
type down struct{ driver.Driver }

var errDown = errors.New("secret host is down")

func (down) Claim(context.Context, driver.ClaimParams) (driver.ClaimResult, error) {
	return driver.ClaimResult{}, errDown
}

// Transact implements [driver.Transactor], for the drivers that have it.
func (down) Transact(context.Context, driver.TransactParams, driver.TransactFunc) (driver.TransactResult, error) {
	return driver.TransactResult{}, errDown
}
