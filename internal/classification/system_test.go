package classification_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/idem-go/idem/driver"
)

func nobody(error) driver.FailureKind { return driver.KindUnknown }

func TestNetworkAndSystemErrors(t *testing.T) {
	t.Parallel()
	rows := table{}
	dialer := net.Dialer{Timeout: time.Second}
	_, err := dialer.DialContext(t.Context(), "tcp", refused(t))
	rows["connection refused"] = provoked{err, passing}
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp", refused(t))
	}}
	_, err = resolver.LookupHost(t.Context(), "nobody.invalid")
	rows["host not found"] = provoked{err, passing}

	p := newProxy(t, refused(t))
	c, err := dialer.DialContext(t.Context(), "tcp", p.addr())
	must(t, err)
	defer func() { _ = c.Close() }()
	_, err = io.ReadFull(c, make([]byte, 1))
	rows["end of a connection, to its reader"] = provoked{err, domain} // io.EOF ends files, too

	_, err = os.Open("/nowhere/at/all")
	rows["file not found"] = provoked{err, domain}
	_, err = strconv.Atoi("x")
	rows["not a number"] = provoked{err, domain}
	_, err = url.Parse(strings.Repeat("http://[", 1+len(rows)))
	rows["URL that is none"] = provoked{err, domain}
	if full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0); err == nil {
		_, err = full.WriteString("x")
		rows["disk full"] = provoked{err, passing}
		_ = full.Close()
	}
	r, w := io.Pipe()
	_ = r.Close()
	_, err = w.Write([]byte("x"))
	rows["pipe without a reader"] = provoked{err, passing}
	rows["number of the system, bare"] = provoked{syscall.ECONNRESET, passing}
	rows.check(t, nobody)
}

func TestHTTPClientErrors(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			<-release
		case "/cut":
			w.Header().Set("Content-Length", "10")
			_, _ = w.Write([]byte("x"))
		default:
			panic(http.ErrAbortHandler)
		}
	}))
	defer s.Close()
	defer close(release)
	client := &http.Client{Timeout: 300 * time.Millisecond, Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(url string) error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, http.NoBody)
		must(t, err)
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = res.Body.Close() }()
		_, err = io.ReadAll(res.Body)
		return err
	}
	table{
		"connection refused":             {get("http://" + refused(t)), passing},
		"connection closed, no response": {get(s.URL + "/abort"), passing},
		"body cut off":                   {get(s.URL + "/cut"), passing},
		"client's timeout":               {get(s.URL + "/slow"), passing},
	}.check(t, nobody)
}
