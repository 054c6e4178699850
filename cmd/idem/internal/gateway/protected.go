package gateway

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/transports/idemhttp"
)

// protected are the requests of a route.
type protected struct {
	next   http.Handler
	op     *idem.Operation
	policy Policy
	logger *slog.Logger
}

// run is what is known of a request's run when it is over.
type run struct {
	unreached bool // the service has seen nothing of it
	key       string
	fence     int64
}

type runKey struct{}

// ServeHTTP implements [http.Handler]. A request goes on when its client has gone, so that a retry finds its response.
func (p *protected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		p.next.ServeHTTP(w, r) // which lets it through
		return
	}
	over := &run{}
	ctx := context.WithValue(context.WithoutCancel(r.Context()), runKey{}, over)
	r = r.WithContext(ctx)
	p.next.ServeHTTP(&settling{w, func() { p.settle(r, over) }}, r)
}

// settle frees the key of a guard that was not reached by anybody: nothing has run.
func (p *protected) settle(r *http.Request, over *run) {
	if !over.unreached || p.op.Guarantee() != idem.AtMostOnce {
		return
	}
	principal, err := p.policy.principal(r)
	if err != nil {
		return // it would not have run
	}
	opts := append(idemhttp.KeyOptions(r, principal), idem.IfFence(over.fence))
	if err := p.op.Resolve(r.Context(), over.key, idem.NotRun(), opts...); err != nil {
		p.logger.WarnContext(r.Context(), "a key whose request did not reach the upstream stays uncertain", "error", err)
	}
}

// settling does something before the client is answered, and so before it can ask again.
type settling struct {
	http.ResponseWriter

	first func()
}

// Unwrap lets [http.ResponseController] reach the connection.
func (s *settling) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (s *settling) WriteHeader(status int) {
	s.first()
	s.ResponseWriter.WriteHeader(status)
}
