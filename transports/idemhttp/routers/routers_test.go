package routers_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/labstack/echo/v4"

	"github.com/idem-go/idem"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	"github.com/idem-go/idem/transports/idemhttp"
)

type middleware = func(http.Handler) http.Handler

// routers build a handler that answers POST /payments/{id} and POST /refunds/{id}
// with fn, behind the middleware.
var routers = map[string]func(protect middleware, fn http.HandlerFunc) http.Handler{
	"net/http, inside": func(protect middleware, fn http.HandlerFunc) http.Handler {
		mux := http.NewServeMux()
		mux.Handle("POST /payments/{id}", protect(fn))
		mux.Handle("POST /refunds/{id}", protect(fn))
		return mux
	},
	"net/http, outside": func(protect middleware, fn http.HandlerFunc) http.Handler {
		mux := http.NewServeMux()
		mux.Handle("POST /payments/{id}", fn)
		mux.Handle("POST /refunds/{id}", fn)
		return protect(mux)
	},
	"chi": func(protect middleware, fn http.HandlerFunc) http.Handler {
		r := chi.NewRouter()
		r.Use(protect)
		r.Post("/payments/{id}", fn)
		r.Post("/refunds/{id}", fn)
		return r
	},
	"echo": func(protect middleware, fn http.HandlerFunc) http.Handler {
		e := echo.New()
		e.Use(echo.WrapMiddleware(protect))
		e.POST("/payments/:id", echo.WrapHandler(fn))
		e.POST("/refunds/:id", echo.WrapHandler(fn))
		return e
	},
	"gin": func(protect middleware, fn http.HandlerFunc) http.Handler {
		gin.SetMode(gin.ReleaseMode)
		g := gin.New()
		g.POST("/payments/:id", gin.WrapH(protect(fn)))
		g.POST("/refunds/:id", gin.WrapH(protect(fn)))
		return g
	},
}

func TestMiddlewareWorksUnderEveryRouter(t *testing.T) {
	t.Parallel()
	for name, build := range routers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, err := idemmemory.New()
			if err != nil {
				t.Fatal(err)
			}
			op, err := idem.NewOperation("payments", store, idem.AtLeastOnce)
			if err != nil {
				t.Fatal(err)
			}
			protect, err := idemhttp.New(op, idemhttp.WithoutPrincipal())
			if err != nil {
				t.Fatal(err)
			}
			var runs atomic.Int64
			server := httptest.NewServer(build(protect, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				w.Header().Set("Location", r.URL.Path)
				w.WriteHeader(http.StatusCreated)
				fmt.Fprintf(w, "%d %s", runs.Add(1), body)
			}))
			t.Cleanup(server.Close)
			for _, row := range []struct {
				path, key, body string
				status          int
				answer          string
				replayed        bool
			}{
				{"/payments/1", "k", "a", 201, "1 a", false},
				{"/payments/1", "k", "a", 201, "1 a", true},
				{"/payments/1", "k", "b", 422, "", false},
				{"/payments/1", "", "a", 400, "", false},
				{"/refunds/1", "k", "a", 201, "2 a", false},
				{"/refunds/1", "k", "a", 201, "2 a", true},
				{"/payments/1", "l", "a", 201, "3 a", false},
			} {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+row.path, strings.NewReader(row.body))
				if err != nil {
					t.Fatal(err)
				}
				if row.key != "" {
					r.Header.Set("Idempotency-Key", row.key)
				}
				res, err := server.Client().Do(r)
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if res.StatusCode != row.status || row.answer != "" && string(body) != row.answer ||
					(res.Header.Get("Idempotency-Replayed") == "true") != row.replayed ||
					row.status == 201 && res.Header.Get("Location") != row.path {
					t.Errorf("%+v: %d %v %s", row, res.StatusCode, res.Header, body)
				}
			}
		})
	}
}
