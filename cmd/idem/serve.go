package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/cmd/idem/internal/gateway"
	"github.com/idem-go/idem/cmd/idem/internal/stores"
	"github.com/idem-go/idem/transports/idemhttp"
)

// serve runs a gateway until ctx ends.
func serve(ctx context.Context, args []string, stderr io.Writer) error {
	c, err := configure(args, stderr)
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(stderr, nil))
	store, err := stores.Open(ctx, c.Store)
	if err != nil {
		return err
	}
	defer store.Close()
	g, err := gateway.New(c, store, logger)
	if err != nil {
		return err
	}
	if err := g.Verify(ctx); err != nil {
		return err
	}
	return g.Serve(ctx, c, logger)
}

// configure reads the flags and the file. A flag wins over the file.
func configure(args []string, stderr io.Writer) (gateway.Config, error) {
	var c gateway.Config
	flags := flag.NewFlagSet("idem serve", flag.ContinueOnError)
	flags.SetOutput(stderr)
	path := flags.String("config", "", "a YAML file; flags win over what it says")
	text := func(to *string, name, otherwise, usage string) {
		flags.StringVar(to, name, "", fmt.Sprintf("%s (default %s)", usage, otherwise))
	}
	duration := func(to *time.Duration, name string, otherwise any, usage string) {
		flags.DurationVar(to, name, 0, fmt.Sprintf("%s (default %v)", usage, otherwise))
	}
	flags.StringVar(&c.Upstream, "upstream", "", "the service, as http://127.0.0.1:9000; required")
	text(&c.Listen, "listen", gateway.DefaultListen, "where requests come in")
	text(&c.Admin, "admin", gateway.DefaultAdmin, "where /healthz and /readyz are")
	text(&c.Store, "store", gateway.DefaultStore, stores.Forms)
	duration(&c.Drain, "drain", gateway.DefaultDrain, "how long requests may take to finish at the end")
	text(&c.Policy.Guarantee, "guarantee", "at-least-once", "at-least-once or at-most-once")
	text(&c.Policy.Key, "key", "required", "required, optional or ignored")
	text(&c.Policy.Principal, "principal", "none, and a warning", "the header that tells callers apart, or none")
	duration(&c.Policy.Lease, "lease", idem.DefaultLeaseTTL, "how long a run that died holds its key")
	duration(&c.Policy.Retention, "retention", fmt.Sprint(idem.DefaultRetention, "; at-most-once: for ever"), "how long responses are replayed")
	duration(&c.Policy.Wait, "wait", "not at all", "how long a duplicate waits for the first")
	flags.Int64Var(&c.Policy.MaxBody, "max-body", 0, fmt.Sprintf("the longest request body, in bytes (default %d)", idemhttp.DefaultMaxBody))
	flags.IntVar(&c.Policy.MaxResponse, "max-response", 0,
		fmt.Sprintf("the longest response body that is stored, in bytes (default %d)", idemhttp.DefaultMaxResponse))
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if flags.NArg() > 0 {
		return c, fmt.Errorf("%q is one argument too many: idem serve takes flags only", flags.Arg(0))
	}
	if *path != "" {
		file, err := os.ReadFile(*path)
		if err != nil {
			return c, err
		}
		fromFile, err := gateway.Parse(file)
		if err != nil {
			return c, fmt.Errorf("%s: %w", *path, err)
		}
		c = c.Or(fromFile)
	}
	if c.Upstream == "" {
		return c, errors.New("no upstream: give -upstream http://127.0.0.1:9000")
	}
	return c.WithDefaults(), nil
}
