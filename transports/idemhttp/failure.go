package idemhttp

import (
	"context"
	"net/http"
)

// FailureRenderer turns an error into a response. It runs inside the
// operation, so that the first answer and its replay are the same.
type FailureRenderer func(w http.ResponseWriter, r *http.Request, err error)

// HandlerFunc is a handler that may fail; see [WithFailureRenderer].
type HandlerFunc func(w http.ResponseWriter, r *http.Request) error

type rendererKey struct{}

func contextWithRenderer(ctx context.Context, c *config) context.Context {
	if c.renderer == nil {
		return ctx
	}
	return context.WithValue(ctx, rendererKey{}, c.renderer)
}

// ServeHTTP implements [http.Handler].
func (f HandlerFunc) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := f(w, r)
	if err == nil {
		return
	}
	if render, ok := r.Context().Value(rendererKey{}).(FailureRenderer); ok {
		render(w, r, err)
		return
	}
	new(config).problem(w, http.StatusInternalServerError, "failed", "", 0)
}
