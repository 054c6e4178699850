package idemclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// call is one logical request.
type call struct {
	*Transport

	request *http.Request
	key     string
	body    func() (io.ReadCloser, error) // nil: the request's own, which can be sent only once
	length  int64
	last    *http.Response // of the try before
}

// newCall copies the body if it has to. On an error the body is closed.
func (t *Transport) newCall(r *http.Request, key string) (*call, error) {
	c := &call{Transport: t, request: r, key: key, body: r.GetBody, length: r.ContentLength}
	switch {
	case r.Body == nil || r.Body == http.NoBody:
		c.body = func() (io.ReadCloser, error) { return r.Body, nil }
	case r.GetBody != nil:
		closeBody(r) // each try has one of its own
	case r.ContentLength <= t.maxBody:
		if err := c.copyBody(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// copyBody copies the body, unless it is too long: then it is put back together.
func (c *call) copyBody() error {
	r := c.request
	all, err := io.ReadAll(io.LimitReader(r.Body, c.maxBody+1))
	if err != nil {
		closeBody(r)
		return err
	}
	if int64(len(all)) > c.maxBody {
		original := r.Body
		c.request = r.WithContext(r.Context())
		c.request.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(all), original), original}
		return nil
	}
	closeBody(r)
	c.length = int64(len(all))
	c.body = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(all)), nil }
	return nil
}

// errAnswer is why the last answer is not the end. It never leaves the package.
var errAnswer = errors.New("the server may answer otherwise later")

// try sends the request once. An answer that may change comes with an error.
func (c *call) try() (*http.Response, error) {
	c.discard()
	r := c.request.Clone(c.request.Context())
	r.Header.Set(c.keyHeader, c.key)
	if c.body != nil {
		body, err := c.body()
		if err != nil {
			return nil, backoff.Permanent(err)
		}
		r.Body, r.GetBody, r.ContentLength = body, c.body, c.length
		if body == nil || body == http.NoBody {
			r.GetBody = nil
		}
	}
	res, err := c.base.RoundTrip(r)
	switch {
	case err != nil && (c.body == nil || !mayPass(err)):
		return nil, backoff.Permanent(err)
	case err != nil:
		return nil, err
	case c.body == nil:
		return res, nil
	}
	c.last = res
	return res, c.judge(res)
}

// discard gives the connection of the last answer back.
func (c *call) discard() {
	if c.last != nil {
		const worth = 64 << 10 // bytes; beyond that a new connection is cheaper
		_, _ = io.CopyN(io.Discard, c.last.Body, worth)
		_ = c.last.Body.Close()
		c.last = nil
	}
}

// mayPass reports whether a failure to get an answer may be over the next time.
func mayPass(err error) bool {
	var certificate *tls.CertificateVerificationError
	var dns *net.DNSError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	case errors.As(err, &certificate), errors.Is(err, http.ErrSchemeMismatch), errors.Is(err, http.ErrSkipAltProtocol):
		return false
	case errors.As(err, &dns):
		return !dns.IsNotFound
	}
	return true
}

// judge returns nil if the answer is the end, else an error that says when to ask again.
func (c *call) judge(res *http.Response) error {
	after, told := retryAfter(res)
	switch res.StatusCode {
	case http.StatusConflict:
		if !told { // it is not in progress
			return nil
		}
	case http.StatusTooEarly, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
	default:
		return nil
	}
	deadline, bounded := c.request.Context().Deadline()
	switch {
	case res.Header.Get(c.replayed) != "":
		return nil // it is stored: it will not change
	case !told:
		return errAnswer
	case after > c.maxRetryAfter, bounded && time.Until(deadline) < after:
		return nil
	}
	return &backoff.RetryAfterError{Duration: after}
}

// retryAfter reads the header of that name: seconds, or a date by the server's clock.
func retryAfter(res *http.Response) (after time.Duration, told bool) {
	value := res.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	now, err := http.ParseTime(res.Header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return max(at.Sub(now), 0), true
}
