package benchmarks_test

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	fiber2 "github.com/gofiber/fiber/v2"
	fiber2idempotency "github.com/gofiber/fiber/v2/middleware/idempotency"
	"github.com/gofiber/fiber/v3"
	fiberidempotency "github.com/gofiber/fiber/v3/middleware/idempotency"

	"github.com/idem-go/idem"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	"github.com/idem-go/idem/transports/idemhttp"
)

const (
	keyHeader = "Idempotency-Key"
	request   = `{"amount":500,"currency":"EUR","card":"tok_1"}`
	response  = `{"id":"ch_1","amount":500,"currency":"EUR"}`
)

// framework is a web framework and its idempotency middleware. Bare and protected differ in nothing else.
type framework struct {
	name            string
	bare, protected string // URLs
}

func frameworks(b *testing.B) []framework {
	b.Helper()
	return []framework{
		{"idem", serveStandard(b, false), serveStandard(b, true)},
		{"fiber/v2", serveFiber2(b, false), serveFiber2(b, true)},
		{"fiber/v3", serveFiber3(b, false), serveFiber3(b, true)},
	}
}

func serveStandard(b *testing.B, protect bool) string {
	b.Helper()
	server := httptest.NewServer(handler(b, protect))
	b.Cleanup(server.Close)
	return server.URL
}

func handler(b *testing.B, protect bool) http.Handler {
	b.Helper()
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, response)
	})
	if protect {
		store, err := idemmemory.New(idemmemory.WithMaxRecords(1 << 20))
		must(b, err)
		op, err := idem.NewOperation("payments", store, idem.AtLeastOnce)
		must(b, err)
		middleware, err := idemhttp.New(op, idemhttp.WithoutPrincipal(), idemhttp.WithLogger(slog.New(slog.DiscardHandler)))
		must(b, err)
		h = middleware(h)
	}
	return h
}

func serveFiber2(b *testing.B, protect bool) string {
	b.Helper()
	app := fiber2.New(fiber2.Config{DisableStartupMessage: true})
	if protect {
		app.Use(fiber2idempotency.New(fiber2idempotency.Config{KeyHeader: keyHeader}))
	}
	app.Post("/", func(c *fiber2.Ctx) error {
		c.Set("Content-Type", "application/json")
		return c.Status(http.StatusCreated).SendString(response)
	})
	l := listen(b)
	go func() { _ = app.Listener(l) }()
	b.Cleanup(func() { _ = app.Shutdown() })
	return "http://" + l.Addr().String()
}

func serveFiber3(b *testing.B, protect bool) string {
	b.Helper()
	app := fiber.New()
	if protect {
		app.Use(fiberidempotency.New(fiberidempotency.Config{KeyHeader: keyHeader}))
	}
	app.Post("/", func(c fiber.Ctx) error {
		c.Set("Content-Type", "application/json")
		return c.Status(http.StatusCreated).SendString(response)
	})
	l := listen(b)
	go func() { _ = app.Listener(l, fiber.ListenConfig{DisableStartupMessage: true}) }()
	b.Cleanup(func() { _ = app.Shutdown() })
	return "http://" + l.Addr().String()
}

func listen(b *testing.B) net.Listener {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	return l
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

var keys atomic.Int64

// newKey returns a key of 36 bytes, which is what the others want by default.
func newKey() string { return fmt.Sprintf("%036d", keys.Add(1)) }

// BenchmarkBesideBareHandlers sends requests over loopback connections, a few to each server in turn, so that what else the
// machine does falls on all of them alike. Its metrics are the median time of a request as a multiple of the same
// framework's bare handler, and the time that the middleware adds as a multiple of what idem's adds.
func BenchmarkBesideBareHandlers(b *testing.B) {
	const requests = 50 // to each server in a round
	all := frameworks(b)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	kinds := []string{"bare", "first", "replay"}
	times := map[string][]time.Duration{}
	fixed := newKey()
	for b.Loop() {
		for _, kind := range kinds {
			for _, f := range all {
				url := f.protected
				if kind == "bare" {
					url = f.bare
				}
				for range requests {
					key := fixed
					if kind == "first" {
						key = newKey()
					}
					times[f.name+kind] = append(times[f.name+kind], send(b, client, url, key))
				}
			}
		}
	}
	median := func(f framework, kind string) float64 {
		sorted := slices.Sorted(slices.Values(times[f.name+kind]))
		return float64(sorted[len(sorted)/2])
	}
	for _, kind := range kinds[1:] {
		for _, f := range all {
			b.ReportMetric(median(f, kind)/median(f, "bare"), f.name+"-"+kind+"/bare")
			added := (median(f, kind) - median(f, "bare")) / (median(all[0], kind) - median(all[0], "bare"))
			b.ReportMetric(added, f.name+"-"+kind+"-added/idem")
		}
	}
}

func send(b *testing.B, client *http.Client, url, key string) time.Duration {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, strings.NewReader(request))
	must(b, err)
	r.Header.Set(keyHeader, key)
	r.Header.Set("Content-Type", "application/json")
	began := time.Now()
	res, err := client.Do(r)
	must(b, err)
	body, err := io.ReadAll(res.Body)
	took := time.Since(began)
	must(b, err)
	must(b, res.Body.Close())
	if res.StatusCode != http.StatusCreated || string(body) != response {
		b.Fatal(res.Status, string(body))
	}
	return took
}

// BenchmarkHandler calls the middleware without a socket: what it costs by itself, in allocations too.
func BenchmarkHandler(b *testing.B) {
	for _, kind := range []string{"bare", "first", "replay"} {
		b.Run(kind, func(b *testing.B) {
			h := handler(b, kind != "bare")
			all := make([]string, b.N)
			fixed := newKey()
			for i := range all {
				if all[i] = fixed; kind == "first" {
					all[i] = newKey()
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			for _, key := range all {
				r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/", strings.NewReader(request))
				r.Header.Set(keyHeader, key)
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code != http.StatusCreated {
					b.Fatal(w.Code, w.Body)
				}
			}
		})
	}
}
