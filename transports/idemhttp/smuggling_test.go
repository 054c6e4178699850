package idemhttp_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/transports/idemhttp"
	"github.com/idem-go/idem/transports/idemhttp/internal/rules"
)

// wire sends bytes over a socket of their own, and returns what comes back; status 0: the server hung up.
func wire(t *testing.T, address, bytes string) rules.Answer {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	must(t, err)
	defer func() { _ = conn.Close() }()
	must(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	go func() { _, _ = io.WriteString(conn, bytes) }() // the server may answer before it has read everything
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return rules.Answer{}
	}
	body, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	return rules.Answer{Status: res.StatusCode, Header: res.Header, Body: string(body)}
}

// plain serves a handler that answers which run it is and which body it read, without TLS.
func plain(t *testing.T) (address string, runs *atomic.Int64) {
	t.Helper()
	op, err := idem.NewOperation("payments", memory(t), idem.AtLeastOnce)
	must(t, err)
	protect, err := idemhttp.New(op, idemhttp.WithoutPrincipal(), idemhttp.WithLogger(quiet))
	must(t, err)
	runs = new(atomic.Int64)
	server := httptest.NewServer(protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%d %s", runs.Add(1), body)
	})))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), runs
}

// post is a request with a body of three bytes and the header lines.
func post(lines ...string) string {
	return "POST /payments HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nContent-Length: 3\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n500"
}

func TestKeysThatTwoReadersMayReadDifferentlyAreRefused(t *testing.T) {
	t.Parallel()
	address, runs := plain(t)
	for name, request := range map[string]string{
		"two lines":                  post("Idempotency-Key: a", "Idempotency-Key: b"),
		"the same line twice":        post("Idempotency-Key: a", "Idempotency-Key: a"),
		"two lines, spelt otherwise": post("Idempotency-Key: a", "idempotency-KEY: b"),
		"a comma":                    post("Idempotency-Key: a, b"),
		"a comma between quotes":     post(`Idempotency-Key: "a", "b"`),
		"a carriage return":          post("Idempotency-Key: a\rb"),
		"a NUL":                      post("Idempotency-Key: a\x00b"),
		"a DEL":                      post("Idempotency-Key: a\x7fb"),
		"a tab":                      post("Idempotency-Key: a\tb"),
		"non-ASCII":                  post("Idempotency-Key: zahlung-\u00e4"),
		"invalid UTF-8":              post("Idempotency-Key: a\xff"),
		"a full-width quote":         post("Idempotency-Key: \uff02a\uff02"),
		"nothing":                    post("Idempotency-Key:"),
		"blanks":                     post("Idempotency-Key:  \t "),
		"quoted blanks":              post(`Idempotency-Key: "   "`),
		"no end of the quotes":       post(`Idempotency-Key: "a`),
		"parameters":                 post(`Idempotency-Key: "a";version=1`),
		"a space before the colon":   post("Idempotency-Key : a"),
		"a space before the name":    post(" Idempotency-Key: a"),
		"a line without a name":      post(": a"),
		"only a similar name":        post("Idempotency_Key: a"),
		"in a trailer": "POST /payments HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nTrailer: Idempotency-Key\r\n\r\n" +
			"3\r\n500\r\n0\r\nIdempotency-Key: a\r\n\r\n",
		"a key of 10 MB": post("Idempotency-Key: " + strings.Repeat("k", 10<<20)),
	} {
		a := wire(t, address, request)
		if runs.Load() != 0 {
			t.Fatalf("%s: the handler ran: %+v", name, a)
		}
		if a.Status != 0 && a.Status != http.StatusBadRequest && a.Status != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("%s: %+v", name, a)
		}
		a.WantNothingInternal(t)
	}
}

func TestKeyCannotAddHeadersOrRequests(t *testing.T) {
	t.Parallel()
	address, runs := plain(t)
	a := wire(t, address, post("Idempotency-Key: a\r\nSet-Cookie: session=stolen\r\nX-Injected: 1"))
	if a.Status != http.StatusOK || a.Header.Get("Set-Cookie") != "" || a.Header.Get("X-Injected") != "" || a.Header.Get("Idempotency-Key") != "a" {
		t.Errorf("%+v", a)
	}
	folded := wire(t, address, post("Idempotency-Key: b\r\n c")) // an obsolete continuation: one line with a space, or refused
	if folded.Status == http.StatusOK && folded.Header.Get("Idempotency-Key") != "b c" {
		t.Errorf("%+v", folded)
	}
	ran := runs.Load()
	for name, request := range map[string]string{
		"two lengths":       post("Idempotency-Key: c", "Content-Length: 30"),
		"a negative length": strings.Replace(post("Idempotency-Key: c"), "Content-Length: 3", "Content-Length: -3", 1),
		"an unknown coding": strings.Replace(post("Idempotency-Key: c"), "Content-Length: 3", "Transfer-Encoding: xchunked", 1),
		"two codings":       post("Idempotency-Key: c", "Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
	} {
		if a := wire(t, address, request); a.Status != http.StatusBadRequest && a.Status != http.StatusNotImplemented || runs.Load() != ran {
			t.Errorf("%s: %+v", name, a)
		}
	}
	// Length and chunks: whichever of them counts, the handler reads what was hashed.
	both := "POST /payments HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nIdempotency-Key: d\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
	first := wire(t, address, both+"3\r\n500\r\n0\r\n\r\n")
	if other := wire(t, address, both+"3\r\n900\r\n0\r\n\r\n"); first.Status == http.StatusOK && other.Status != http.StatusUnprocessableEntity {
		t.Errorf("first %+v, then %+v", first, other)
	}
}
