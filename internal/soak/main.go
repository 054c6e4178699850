// Command soak runs every driver for a long time under faults and counts what
// happens. Operations of each guarantee that a store has go through the engine,
// on several handles of the store, while calls fail, replies are lost, calls are
// sent twice, contexts are cancelled, and connections are cut and stalled.
// What ran and what was recorded is written down apart, in a ledger; what
// contradicts it is a violation.
//
//	go run . -for 30m -seed 7
//
// It uses the servers that the IDEM_TEST_* variables name; `make soak` sets them.
// The exit status is 1 after a violation. The same seed makes the same choices;
// what comes of them depends on the scheduler and the network.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"time"
)

func main() { os.Exit(program()) }

func program() int {
	length := flag.Duration("for", 10*time.Minute, "how long to run")
	seed := flag.Uint64("seed", 0, "what to repeat; 0: a new one")
	flag.Parse()
	if *seed == 0 {
		*seed = rand.Uint64() //nolint:gosec // a seed is no secret
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s, err := run(ctx, config{length: *length, seed: *seed, open: backends, progress: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		return 1
	}
	_, _ = fmt.Fprint(os.Stdout, s)
	if s.violations() > 0 {
		return 1
	}
	return 0
}
