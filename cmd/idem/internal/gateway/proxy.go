package gateway

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"

	"github.com/idem-go/idem"
)

// What the service is told of a run, so that it can refuse one that is no longer the latest.
const (
	fenceHeader   = "Idempotency-Fence"
	attemptHeader = "Idempotency-Attempt"
)

// newProxy returns a proxy to the service. Hop-by-hop headers stay here; the host goes through.
func newProxy(upstream *url.URL, logger *slog.Logger) http.Handler {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
	transport.Proxy = nil
	transport.MaxIdleConnsPerHost = 64
	return &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(upstream)
			p.SetXForwarded()
			p.Out.Host = p.In.Host
			unrepeated(p.Out.Header)
			p.Out.Header.Del(fenceHeader)
			p.Out.Header.Del(attemptHeader)
			if a, ok := idem.FromContext(p.In.Context()); ok {
				p.Out.Header.Set(fenceHeader, strconv.FormatInt(a.Fence(), 10))
				p.Out.Header.Set(attemptHeader, strconv.Itoa(a.Number()))
			}
		},
		Transport: transport,
		ErrorLog:  slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			unanswered(w, r, err, logger)
		},
	}
}

// unrepeated spells the key's header as Go's transport does not know it: it would send a request with a key again by
// itself when a connection breaks, and whether that is done is the store's to say.
func unrepeated(h http.Header) {
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if values, ok := h[name]; ok {
			delete(h, name)
			h[strings.ToLower(name)] = values
		}
	}
}

// unanswered says that the service has not answered. What it did is not known, unless it was not reached at all.
func unanswered(w http.ResponseWriter, r *http.Request, err error, logger *slog.Logger) {
	if !errors.Is(err, context.Canceled) {
		logger.WarnContext(r.Context(), "the upstream did not answer", "error", err)
	}
	if a, ok := idem.FromContext(r.Context()); ok {
		_ = a.DoNotRecord() // which only an inbox refuses
		if run, ok := r.Context().Value(runKey{}).(*run); ok {
			var dial *net.OpError
			run.unreached = errors.As(err, &dial) && dial.Op == "dial"
			run.fence = a.Fence()
			run.key = a.Key()
		}
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusBadGateway)
	_, _ = io.WriteString(w, `{"type":"tag:idem-go,2026:problem:upstream_unavailable","title":"The service did not answer",`+
		`"status":502,"code":"upstream_unavailable"}`+"\n")
}

// holdBack keeps the proxy from flushing a response whose length is not known, which could then not be stored. A
// stream of events goes through as it comes.
func holdBack(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(&heldBack{ResponseWriter: w}, r) })
}

type heldBack struct{ http.ResponseWriter }

// Unwrap lets [http.ResponseController] take the connection over.
func (h *heldBack) Unwrap() http.ResponseWriter { return h.ResponseWriter }

func (h *heldBack) events() bool {
	t, _, _ := mime.ParseMediaType(h.Header().Get("Content-Type"))
	return t == "text/event-stream"
}

// FlushError is what [http.ResponseController] calls.
func (h *heldBack) FlushError() error {
	if !h.events() {
		return nil
	}
	return http.NewResponseController(h.ResponseWriter).Flush()
}

// Write lets a response run to its end, and be recorded, when the client has gone. Events may have no end.
func (h *heldBack) Write(p []byte) (int, error) {
	n, err := h.ResponseWriter.Write(p)
	if err == nil || h.events() {
		return n, err
	}
	return len(p), nil
}
