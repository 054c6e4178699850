package idemclient

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/cenkalti/backoff/v5"
)

// Transport is an [http.RoundTripper] that gives POST, PUT, PATCH and DELETE
// requests a key and repeats them; others go through as they are. It is used concurrently.
type Transport struct {
	config

	base http.RoundTripper
}

var _ http.RoundTripper = (*Transport)(nil)

// NewTransport returns a transport that sends by base; nil: by
// [http.DefaultTransport]. What is wrong with the options is refused here.
func NewTransport(base http.RoundTripper, opts ...Option) (*Transport, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	if base == nil {
		base = http.DefaultTransport
	}
	return &Transport{config: c, base: base}, nil
}

// maxKey is the largest length of a key, in bytes.
const maxKey = 255

type keyOfContext struct{}

// ContextWithKey returns a context whose requests have the key, unless their
// header has one. It is for one request at a time: two different ones with one key are
// refused by the server. A key is 1 to 255 printable ASCII characters; any other is an error of the request.
func ContextWithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyOfContext{}, key)
}

var keyed = []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// RoundTrip implements [http.RoundTripper]. The last answer is returned if the
// server does not change its mind, and the last error if there was no answer.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !slices.Contains(keyed, r.Method) {
		return t.base.RoundTrip(r)
	}
	key, err := t.keyOf(r)
	if err != nil {
		closeBody(r)
		return nil, fmt.Errorf("idemclient: %w", err)
	}
	c, err := t.newCall(r, key)
	if err != nil {
		return nil, err
	}
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = t.firstBackOff, t.maxBackOff
	res, err := backoff.Retry(r.Context(), c.try,
		backoff.WithBackOff(wait), backoff.WithMaxTries(t.maxTries), backoff.WithMaxElapsedTime(t.maxElapsed))
	if res != nil && r.Context().Err() != nil {
		c.discard()
		return nil, context.Cause(r.Context())
	}
	if res != nil { // the last answer, even if another was hoped for
		return res, nil
	}
	if permanent, ok := errors.AsType[*backoff.PermanentError](err); ok { // of the last try
		err = permanent.Err
	}
	return nil, err
}

// CloseIdleConnections does so in the transport below, for [http.Client].
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// keyOf returns the request's key: the caller's, that of the request that was redirected here, or a new one.
func (t *Transport) keyOf(r *http.Request) (string, error) {
	switch lines := r.Header.Values(t.keyHeader); len(lines) {
	case 0:
	case 1:
		return lines[0], nil
	default:
		return "", errors.New("the request has two keys: set one")
	}
	if key, ok := r.Context().Value(keyOfContext{}).(string); ok {
		printable := func(c byte) bool { return c >= ' ' && c <= '~' }
		if len(key) > maxKey || strings.TrimSpace(key) == "" ||
			slices.ContainsFunc([]byte(key), func(c byte) bool { return !printable(c) }) {
			return "", fmt.Errorf("the key %.64q is none: use 1 to %d printable ASCII characters", key, maxKey)
		}
		return key, nil
	}
	if r.Response != nil && r.Response.Request != nil {
		if key := r.Response.Request.Header.Get(t.keyHeader); key != "" {
			return key, nil
		}
	}
	return rand.Text(), nil
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}
