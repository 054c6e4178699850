package idemhttp_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/idem-go/idem/transports/idemhttp"
	"github.com/idem-go/idem/transports/idemhttp/internal/rules"
)

func TestTrailersReachTheFirstClient(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		for _, flush := range []bool{false, true} {
			s := onMemory
			s.HTTP2 = http2
			v := s.Serve(t)
			v.Handler = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Trailer", "Checksum")
				_, _ = io.WriteString(w, "body")
				if flush {
					_ = http.NewResponseController(w).Flush()
				}
				w.Header().Set("Checksum", "1")
				w.Header().Set(http.TrailerPrefix+"Late", "2")
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.URL+"/payments", http.NoBody)
			must(t, err)
			r.Header.Set("Idempotency-Key", "k")
			res, err := v.Client.Do(r)
			must(t, err)
			body, err := io.ReadAll(res.Body)
			must(t, err)
			must(t, res.Body.Close())
			if string(body) != "body" || res.Trailer.Get("Checksum") != "1" || res.Trailer.Get("Late") != "2" {
				t.Errorf("http2=%v flush=%v: %s %v", http2, flush, body, res.Trailer)
			}
		}
	}
}

func TestInformationalResponsesPassThrough(t *testing.T) {
	t.Parallel()
	v := onMemory.Serve(t)
	v.Handler = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		w.WriteHeader(http.StatusCreated)
	}
	var hints []string
	trace := &httptrace.ClientTrace{Got1xxResponse: func(status int, h textproto.MIMEHeader) error {
		hints = append(hints, fmt.Sprint(status, h.Get("Link")))
		return nil
	}}
	for _, replayed := range []string{"", "true"} {
		a, err := v.Try(httptrace.WithClientTrace(t.Context(), trace), rules.Request{Key: "k"})
		if err != nil || a.Status != http.StatusCreated || a.Header.Get("Link") != "" || a.Header.Get("Idempotency-Replayed") != replayed {
			t.Errorf("%+v, %v", a, err)
		}
	}
	if !slices.Equal(hints, []string{"103</style.css>; rel=preload"}) {
		t.Error(hints)
	}
}

func TestReadFromStreamsWhatIsOverTheLimit(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 99, 100, 101, 100_000} {
		v := onMemory.Serve(t, idemhttp.WithMaxResponse(100))
		v.Handler = func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, ">")
			copied, err := io.Copy(w, strings.NewReader(strings.Repeat("x", n)))
			if copied != int64(n) || err != nil {
				t.Errorf("copied %d of %d: %v", copied, n, err)
			}
			_, _ = io.WriteString(w, "<")
		}
		first, again := v.Send(rules.Request{Key: "k"}), v.Send(rules.Request{Key: "k"})
		want, replayed := ">"+strings.Repeat("x", n)+"<", "true"
		if first.Body != want {
			t.Errorf("%d: the first client has %d bytes", n, len(first.Body))
		}
		if n+2 > 100 {
			want, replayed = "", "omitted"
		}
		if again.Body != want || again.Header.Get("Idempotency-Replayed") != replayed {
			t.Errorf("%d: a duplicate has %d bytes, %v", n, len(again.Body), again.Header)
		}
	}
}

func TestConnectionThatIsTakenOverIsNotReplayed(t *testing.T) {
	t.Parallel()
	v := onMemory.Serve(t)
	v.Handler = func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		_, _ = conn.Write([]byte(line))
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.URL+"/payments", http.NoBody)
	must(t, err)
	r.Header = http.Header{"Idempotency-Key": {"k"}, "Connection": {"Upgrade"}, "Upgrade": {"echo"}, "Content-Type": {"application/json"}}
	res, err := v.Client.Do(r) //nolint:bodyclose // it is the connection, and closed as such
	must(t, err)
	stream, ok := res.Body.(io.ReadWriteCloser)
	if res.StatusCode != http.StatusSwitchingProtocols || !ok {
		t.Fatal(res.Status)
	}
	_, err = io.WriteString(stream, "hello\n")
	must(t, err)
	line, err := bufio.NewReader(stream).ReadString('\n')
	must(t, stream.Close())
	if line != "hello\n" || err != nil {
		t.Error(line, err)
	}
	again, err := v.Client.Do(r.Clone(t.Context()))
	must(t, err)
	must(t, again.Body.Close())
	if again.StatusCode != http.StatusConflict || v.Runs.Load() != 1 {
		t.Error(again.Status, v.Runs.Load(), "runs")
	}
}

func TestDeadlinesReachTheConnection(t *testing.T) {
	t.Parallel()
	v := onMemory.Serve(t)
	v.Handler = func(w http.ResponseWriter, _ *http.Request) {
		if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Error(err)
		}
	}
	v.Send(rules.Request{Key: "k"})
}

func TestRequestThatMayPassWithoutAKeyMayBeLong(t *testing.T) {
	t.Parallel()
	v := onMemory.Serve(t, idemhttp.WithOptionalKey(), idemhttp.WithMaxBody(10))
	v.Handler = func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n)
	}
	long := strings.Repeat("x", 1000)
	if a := v.Send(rules.Request{Body: long}); a.Body != "1000" {
		t.Errorf("%+v", a)
	}
	v.Send(rules.Request{Key: "k", Body: long}).WantProblem(t, http.StatusRequestEntityTooLarge, "body_too_large")
}

func TestLimitOfAnOuterMiddlewareIsAnsweredLikeOurs(t *testing.T) {
	t.Parallel()
	s := onMemory
	s.Build = func(protect rules.Middleware, fn http.Handler) http.Handler {
		return http.MaxBytesHandler(protect(fn), 4)
	}
	v := s.Serve(t)
	v.Send(rules.Request{Key: "k"}).WantProblem(t, http.StatusRequestEntityTooLarge, "body_too_large")
}

func TestRequestThatBreaksOffDoesNotRun(t *testing.T) {
	t.Parallel()
	v := onMemory.Serve(t)
	v.Handler = func(http.ResponseWriter, *http.Request) {}
	body := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(errors.New("the connection broke")))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.URL+"/payments", body)
	must(t, err)
	r.Header.Set("Idempotency-Key", "k")
	if res, err := v.Client.Do(r); err == nil {
		t.Error("it was answered", res.Status, res.Body.Close())
	}
	if a := v.Send(rules.Request{Key: "k"}); a.Header.Get("Idempotency-Replayed") != "" || v.Runs.Load() != 1 {
		t.Errorf("%+v, %d runs", a, v.Runs.Load())
	}
}
