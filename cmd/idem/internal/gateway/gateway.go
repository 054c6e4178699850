// Package gateway is a reverse proxy that makes the requests of any HTTP
// service safe to retry.
package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	"github.com/idem-go/idem/transports/idemhttp"
)

// alias names the operation of every route, so that a record is found whatever the routes are.
const alias = "gateway"

// Gateway is the handler. It is used concurrently.
type Gateway struct {
	proxy  http.Handler
	routes http.ServeMux              // only to find the pattern that matches
	byName map[string]http.Handler    // by pattern
	rest   http.Handler               // for what matches none
	ops    map[string]*idem.Operation // by guarantee and options; for Verify
}

// New returns a gateway. What is wrong with the configuration is refused here; the
// store is not asked. Guarantees are checked by [Gateway.Verify].
func New(c Config, store driver.Driver, logger *slog.Logger) (*Gateway, error) {
	upstream, err := c.upstream()
	if err != nil {
		return nil, err
	}
	g := &Gateway{proxy: newProxy(upstream, logger), byName: map[string]http.Handler{}, ops: map[string]*idem.Operation{}}
	g.rest = g.proxy
	if len(c.Routes) == 0 {
		g.rest, err = g.protect("every request", c.Policy, store, logger)
		return g, err
	}
	for _, route := range c.Routes {
		h, err := g.protect(fmt.Sprintf("the route %q", route.Match), route.or(c.Policy), store, logger)
		if err != nil {
			return nil, err
		}
		if err := g.add(route.Match, h); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// add registers a pattern; the mux panics about wrong ones.
func (g *Gateway) add(pattern string, h http.Handler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the route %q: %v: write a pattern as \"POST /payments/{id}\"", pattern, p)
		}
	}()
	g.routes.Handle(pattern, h)
	g.byName[pattern] = h
	return nil
}

// protect returns the proxy behind the policy.
func (g *Gateway) protect(what string, p Policy, store driver.Driver, logger *slog.Logger) (http.Handler, error) {
	if p.Key == ignored {
		return g.proxy, nil
	}
	guarantee, err := p.guarantee()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	op, err := idem.NewOperation(alias, store, guarantee, append(p.operation(), idem.WithLogger(logger))...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	g.ops[what] = op
	opts, err := p.keyOptions()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	protect, err := idemhttp.New(op, append(opts, idemhttp.WithLogger(logger))...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if p.Principal == "" {
		logger.Warn(what + " has no principal: a caller who guesses another's key gets the other's response; " +
			"name the header that tells callers apart, or none if that is meant")
	}
	return &protected{next: protect(holdBack(g.proxy)), op: op, policy: p, logger: logger}, nil
}

// ServeHTTP implements [http.Handler].
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h, ok := g.byName[g.match(r)]; ok {
		h.ServeHTTP(w, r)
		return
	}
	g.rest.ServeHTTP(w, r)
}

// match returns the pattern of the request's route. The mux would answer a path that is not clean with a redirect: it sees a clean one.
func (g *Gateway) match(r *http.Request) string {
	clean := path.Clean("/" + r.URL.EscapedPath())
	if strings.HasSuffix(r.URL.Path, "/") && clean != "/" {
		clean += "/"
	}
	u, err := url.Parse(clean)
	if err != nil {
		u = r.URL
	}
	_, pattern := g.routes.Handler(&http.Request{Method: r.Method, Host: r.Host, URL: u})
	return pattern
}

// Verify asks the store whether it can keep what the routes promise.
func (g *Gateway) Verify(ctx context.Context) error {
	for what, op := range g.ops {
		if err := op.Verify(ctx); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

// principal tells callers apart: by host, and by a hash of the header, which may be a credential.
func (p Policy) principal(r *http.Request) (string, error) {
	host := strings.ToLower(r.Host)
	if p.Principal == "" || p.Principal == none {
		return "host " + host, nil
	}
	values := r.Header.Values(p.Principal)
	if len(values) != 1 || values[0] == "" {
		return "", errors.New("one header has to say whose request it is")
	}
	sum := sha256.Sum256([]byte(values[0]))
	return hex.EncodeToString(sum[:]) + " at " + host, nil
}
