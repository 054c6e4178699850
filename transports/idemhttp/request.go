package idemhttp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/canonical"
)

// FingerprintFunc returns what a request's key is tied to; nil: to nothing.
type FingerprintFunc func(r *http.Request, body []byte) ([]byte, error)

var (
	errTooLarge = errors.New("the body is too large")
	errConsumed = errors.New("the body was consumed before this middleware: put it outside of what reads the body")
)

// buffered is a body that was read to its end and can be read again.
type buffered struct {
	*bytes.Reader

	all []byte
}

func (buffered) Close() error { return nil }

// readBody reads the whole body, so that it can be hashed and read again.
func (c *config) readBody(r *http.Request) error {
	if _, ok := r.Body.(buffered); ok || r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	if r.ContentLength > c.maxBody {
		return errTooLarge
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, c.maxBody+1))
	var outer *http.MaxBytesError
	switch {
	case errors.As(err, &outer), int64(len(body)) > c.maxBody:
		return errTooLarge
	case err != nil:
		return err
	case len(body) == 0 && r.ContentLength > 0:
		if r.PostForm == nil {
			return errConsumed
		}
		body = []byte(r.PostForm.Encode()) // ParseForm has read it
	}
	r.Body = buffered{bytes.NewReader(body), body}
	r.ContentLength, r.TransferEncoding = int64(len(body)), nil // now it is known
	return nil
}

// bodyOf returns the body that readBody has read.
func bodyOf(r *http.Request) []byte {
	b, _ := r.Body.(buffered)
	return b.all
}

// rewind makes a body that was read readable from its beginning.
func rewind(r *http.Request) {
	if b, ok := r.Body.(buffered); ok {
		r.Body = buffered{bytes.NewReader(b.all), b.all}
	}
}

// wholeRequest is the default of [WithFingerprint].
func wholeRequest(r *http.Request, body []byte) ([]byte, error) {
	kind := "bytes"
	if isJSON(r) {
		if form, err := canonical.Append(nil, body); err == nil {
			kind, body = "json", form
		}
	}
	var all []byte
	for _, part := range [...]string{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, kind} {
		all = append(binary.AppendUvarint(all, uint64(len(part))), part...)
	}
	return append(all, body...), nil
}

func isJSON(r *http.Request) bool {
	if r.Header.Get("Content-Encoding") != "" {
		return false
	}
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && (t == "application/json" || strings.HasSuffix(t, "+json"))
}

// KeyOptions says where the record of a request's key lives, for
// [idem.Operation.Inspect], Resolve and Forget. principal is what [WithPrincipal]
// returns for the request; "": there is none.
func KeyOptions(r *http.Request, principal string) []idem.KeyOption {
	opts := []idem.KeyOption{idem.WithScope(route(r))}
	if principal != "" {
		opts = append(opts, idem.WithScope(principal))
	}
	return opts
}

// route names what the request asks for: the mux's pattern inside a mux, else the path.
func route(r *http.Request) string {
	if r.Pattern != "" {
		return r.Method + " " + r.Pattern
	}
	return r.Method + " " + r.URL.EscapedPath()
}
