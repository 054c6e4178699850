package routers_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/labstack/echo/v4"
	"go.uber.org/goleak"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	"github.com/idem-go/idem/transports/idemhttp/internal/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// routers serve two routes by fn behind the middleware. The table in the parent folder has the standard mux with the
// middleware inside.
var routers = map[string]func(protect rules.Middleware, fn http.Handler) http.Handler{
	"net/http, outside": func(protect rules.Middleware, fn http.Handler) http.Handler {
		mux := http.NewServeMux()
		mux.Handle("/payments", fn)
		mux.Handle("/refunds", fn)
		return protect(mux)
	},
	"chi": func(protect rules.Middleware, fn http.Handler) http.Handler {
		r := chi.NewRouter()
		r.Use(protect)
		r.Handle("/payments", fn)
		r.Handle("/refunds", fn)
		return r
	},
	"echo": func(protect rules.Middleware, fn http.Handler) http.Handler {
		e := echo.New()
		e.Use(echo.WrapMiddleware(protect))
		e.Any("/payments", echo.WrapHandler(fn))
		e.Any("/refunds", echo.WrapHandler(fn))
		return e
	},
	"gin": func(protect rules.Middleware, fn http.Handler) http.Handler {
		gin.SetMode(gin.ReleaseMode)
		g := gin.New()
		g.Any("/payments", gin.WrapH(protect(fn)))
		g.Any("/refunds", gin.WrapH(protect(fn)))
		return g
	},
}

func TestRulesHoldUnderEveryRouter(t *testing.T) {
	t.Parallel()
	for name, build := range routers {
		for _, g := range []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce} {
			for _, http2 := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%v/http2=%v", name, g, http2), func(t *testing.T) {
					t.Parallel()
					rules.Setup{Open: memory, Guarantee: g, HTTP2: http2, Build: build}.Run(t)
				})
			}
		}
	}
}

func memory(t *testing.T) driver.Driver {
	t.Helper()
	store, err := idemmemory.New()
	if err != nil {
		t.Fatal(err)
	}
	return store
}
