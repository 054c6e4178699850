package gateway

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Serve answers requests until ctx ends; then it takes no new ones, lets those
// that run finish within the configured time, and returns. An error says that
// an address is taken, or that requests were cut off.
func (g *Gateway) Serve(ctx context.Context, c Config, logger *slog.Logger) error {
	var listen net.ListenConfig
	front, err := listen.Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return err
	}
	back, err := listen.Listen(ctx, "tcp", c.Admin)
	if err != nil {
		return errors.Join(err, front.Close())
	}
	var draining atomic.Bool
	service := newServer(g, logger)
	admin := newServer(g.admin(&draining), logger)
	failed := make(chan error, 2)
	go func() { failed <- service.Serve(front) }()
	go func() { failed <- admin.Serve(back) }()
	logger.Info("listening", "address", front.Addr().String(), "admin", back.Addr().String(), "upstream", c.Upstream)
	select {
	case err = <-failed:
	case <-ctx.Done():
		draining.Store(true)
		logger.Info("shutting down", "within", c.Drain)
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Drain)
		defer cancel()
		if err = service.Shutdown(bounded); err != nil {
			err = errors.New("requests were still running: their keys are in progress until their leases end")
		}
	}
	_ = service.Close()
	_ = admin.Close()
	return err
}

func newServer(h http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
}

// admin answers /healthz while the process lives, and /readyz while it takes requests and its store answers.
func (g *Gateway) admin(draining *atomic.Bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		switch {
		case draining.Load():
			http.Error(w, "shutting down", http.StatusServiceUnavailable)
		case g.Verify(ctx) != nil:
			http.Error(w, "the store does not answer", http.StatusServiceUnavailable)
		default:
			_, _ = io.WriteString(w, "ok\n")
		}
	})
	return mux
}
