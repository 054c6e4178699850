package idemhttp

import (
	"bufio"
	"bytes"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
)

// recorder is the response writer of a handler. It holds the response back
// until the handler has returned, or streams from the first flush or the first byte over the limit.
type recorder struct {
	w      http.ResponseWriter
	limit  int
	before func() // called once, just before the status is sent
	hold   bool   // never streams: the transaction decides what is sent

	header    http.Header
	sent      http.Header // as it was when the status was written
	status    int
	body      bytes.Buffer
	omitted   bool // the body is not whole in body
	streaming bool
	hijacked  bool
}

func newRecorder(w http.ResponseWriter, limit int, hold bool, before func()) *recorder {
	return &recorder{w: w, limit: limit, hold: hold, before: before, header: w.Header().Clone()}
}

// Unwrap lets [http.ResponseController] reach deadlines and full duplex.
func (r *recorder) Unwrap() http.ResponseWriter { return r.w }

// Header implements [http.ResponseWriter].
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements [http.ResponseWriter]. Informational responses pass through.
func (r *recorder) WriteHeader(status int) {
	switch {
	case r.hijacked:
		r.w.WriteHeader(status) // which says what is wrong
	case status >= 100 && status < 200 && status != http.StatusSwitchingProtocols:
		r.copyHeader(r.header.Clone()) // which the handler may go on changing
		r.w.WriteHeader(status)
	case r.status == 0:
		r.status = status
		r.sent = r.header.Clone()
	}
}

// Write implements [http.ResponseWriter].
func (r *recorder) Write(p []byte) (int, error) {
	if r.hijacked {
		return 0, http.ErrHijacked
	}
	r.implyStatus(p)
	if r.streaming {
		return r.w.Write(p)
	}
	if r.body.Len()+len(p) > r.limit {
		r.omitted = true
		if !r.hold {
			r.stream()
			return r.w.Write(p)
		}
	}
	return r.body.Write(p)
}

// ReadFrom implements [io.ReaderFrom]: what streams is copied as the server does it best.
func (r *recorder) ReadFrom(src io.Reader) (n int64, err error) {
	if !r.hold && !r.hijacked {
		if !r.streaming { // up to the first byte over the limit, which starts the stream
			n, err = io.Copy(writerOnly{r}, io.LimitReader(src, int64(r.limit-r.body.Len()+1)))
		}
		if err != nil || !r.streaming {
			return n, err
		}
		rest, err := io.Copy(r.w, src)
		return n + rest, err
	}
	return io.Copy(writerOnly{r}, src)
}

// writerOnly hides ReadFrom from [io.Copy].
type writerOnly struct{ io.Writer }

// implyStatus does what a first write without a status means.
func (r *recorder) implyStatus(p []byte) {
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	// As net/http does, so that what is stored has the type too.
	if r.sent.Get("Content-Type") == "" && r.sent.Get("Content-Encoding") == "" && r.body.Len() == 0 && !r.streaming && len(p) > 0 {
		if _, set := r.sent["Content-Type"]; !set {
			r.sent.Set("Content-Type", http.DetectContentType(p))
		}
	}
}

// Flush implements [http.Flusher].
func (r *recorder) Flush() { _ = r.FlushError() }

// FlushError is what [http.ResponseController] calls.
func (r *recorder) FlushError() error {
	if r.hold {
		return http.ErrNotSupported
	}
	r.implyStatus(nil)
	r.omitted = true
	r.stream()
	return http.NewResponseController(r.w).Flush()
}

// Hijack implements [http.Hijacker]. What is said on the connection is not recorded.
func (r *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if r.hold || r.streaming {
		return nil, nil, http.ErrNotSupported
	}
	conn, rw, err := http.NewResponseController(r.w).Hijack()
	if err == nil {
		r.hijacked, r.omitted = true, true
		if r.status == 0 {
			r.status, r.sent = http.StatusSwitchingProtocols, r.header.Clone()
		}
	}
	return conn, rw, err
}

// stream sends what there is and lets the rest through.
func (r *recorder) stream() {
	if r.streaming {
		return
	}
	r.streaming = true
	r.copyHeader(r.sent)
	r.before()
	r.w.WriteHeader(r.status)
	_, _ = r.w.Write(r.body.Bytes())
	r.body = bytes.Buffer{}
}

// finish sends what was held back, and trailers.
func (r *recorder) finish() {
	if r.hijacked {
		return
	}
	r.implyStatus(nil)
	if !r.streaming {
		r.copyHeader(r.sent)
		r.before()
		r.w.WriteHeader(r.status)
		_, _ = r.w.Write(r.body.Bytes()) // a client that is gone asks again
	}
	for name, values := range r.header {
		if strings.HasPrefix(name, http.TrailerPrefix) || r.isTrailer(name) {
			r.w.Header()[name] = values
		}
	}
}

func (r *recorder) isTrailer(name string) bool {
	for _, line := range r.sent.Values("Trailer") {
		for declared := range strings.SplitSeq(line, ",") {
			if http.CanonicalHeaderKey(strings.TrimSpace(declared)) == name {
				return true
			}
		}
	}
	return false
}

// copyHeader makes h the header of the underlying writer.
func (r *recorder) copyHeader(h http.Header) {
	to := r.w.Header()
	clear(to)
	maps.Copy(to, h)
}
