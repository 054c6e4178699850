// Command idem puts idempotency in front of services that have none.
//
//	idem serve -upstream http://127.0.0.1:9000
//
// is a reverse proxy that honours the Idempotency-Key header, with its records
// in a SQLite file. See docs/gateway.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage: idem COMMAND [FLAG...]

  serve    make the requests of an HTTP service safe to retry

idem COMMAND -h lists the flags of a command.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stderr))
}

// run runs a command and returns the exit status: 1 if it failed, 2 if there is no such command.
func run(ctx context.Context, args []string, stderr io.Writer) int {
	command := ""
	if len(args) > 0 {
		command = args[0]
	}
	switch command {
	case "serve":
		err := serve(ctx, args[1:], stderr)
		if err == nil || errors.Is(err, flag.ErrHelp) {
			return 0
		}
		_, _ = fmt.Fprintln(stderr, "idem serve:", err)
		return 1
	case "-h", "-help", "--help", "help":
		_, _ = io.WriteString(stderr, usage)
		return 0
	}
	_, _ = io.WriteString(stderr, usage)
	return 2
}
