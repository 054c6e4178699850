package idemredis_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	idemredis "github.com/idem-go/idem/drivers/redis"
)

// isScript tells the commands of this driver from those of the client's own.
func isScript(command []string) bool { return command[0] == "EVALSHA" || command[0] == "EVAL" }

// A server that refuses is a retryable error of the store, and fn does not run (R3).
func TestAServerThatRefusesKeepsFnFromRunning(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]error{
		"-READONLY You can't write against a read only replica.":                                              driver.ErrConflict,
		"-LOADING Redis is loading the dataset in memory":                                                     driver.ErrConflict,
		"-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is 'no'":                           driver.ErrConflict,
		"-CLUSTERDOWN The cluster is down":                                                                    driver.ErrConflict,
		"-TRYAGAIN Multiple keys request during rehashing of slot":                                            driver.ErrConflict,
		"-MOVED 1 127.0.0.1:1":                                                                                driver.ErrConflict,
		"-ASK 1 127.0.0.1:1":                                                                                  driver.ErrConflict,
		"-BUSY Redis is busy running a script.":                                                               driver.ErrConflict,
		"-OOM command not allowed when used memory > 'maxmemory'.":                                            driver.ErrBusy,
		"-MISCONF Errors writing to the AOF file: No space left on device":                                    driver.ErrBusy,
		"-NOREPLICAS Not enough good replicas to write.":                                                      driver.ErrBusy,
		"-ERR Error running script (call to f_1): @user_script:1: @user_script: 1: -OOM command not allowed":  driver.ErrBusy,
		"-ERR Error running script (call to f_1): @user_script:1: @user_script: 1: -READONLY You can't write": driver.ErrConflict,
		"-NOPERM this user has no permissions to run the 'evalsha' command":                                   nil,
		"-ERR something new": nil,
	} {
		t.Run(strings.Fields(reply)[0], func(t *testing.T) {
			t.Parallel()
			client, p := through(t, standalone(t))
			s := setupOn(t, client)
			p.on(func(command []string) action {
				if isScript(command) {
					return action{reply: reply}
				}
				return action{}
			})
			_, err := s.Claim(t.Context(), claimOf("key"))
			for _, sentinel := range []error{driver.ErrConflict, driver.ErrBusy, driver.ErrLost, driver.ErrCorrupt} {
				if errors.Is(err, sentinel) != (sentinel == want) { //nolint:errorlint // the very sentinel
					t.Errorf("the claim returned %v, want %v", err, want)
				}
			}
			for _, g := range []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce} {
				op, err := idem.NewOperation("payments", s.Store, g)
				must(t, err)
				_, err = idem.Execute(t.Context(), "key", func(context.Context) (int, error) {
					t.Error("fn ran")
					return 0, nil
				}, idem.On(op))
				if e, ok := errors.AsType[*idem.Error](err); !ok || !errors.Is(err, idem.ErrStore) || !e.Retryable() {
					t.Errorf("%v: %v, want a retryable ErrStore", g, err)
				}
			}
			p.on(nil)
			s.mustClaim(claimOf("key"), driver.DecisionClaimed)
		})
	}
}

// The reply to each step is lost once, or the step itself; every key runs once,
// and its outcome is replayed.
func TestLostRepliesDoNotRunTwice(t *testing.T) {
	t.Parallel()
	for _, lost := range []action{{before: true}, {after: true}} {
		for _, g := range []idem.Guarantee{idem.AtLeastOnce, idem.AtMostOnce} {
			t.Run(fmt.Sprintf("%v %+v", g, lost), func(t *testing.T) {
				t.Parallel()
				client, p := through(t, standalone(t))
				s := setupOn(t, client)
				op, err := idem.NewOperation("payments", s.Store, g)
				must(t, err)
				for i := range 60 {
					step, steps := i%3, 0 // the claim, the completion, the replay
					p.on(func(command []string) action {
						if !isScript(command) {
							return action{}
						}
						steps++
						if steps == step+1 {
							return lost
						}
						return action{}
					})
					runs := 0
					for range 2 {
						got, err := idem.Execute(t.Context(), strconv.Itoa(i), func(context.Context) (int, error) {
							runs++
							return i, nil
						}, idem.On(op))
						if err != nil || got != i {
							t.Errorf("key %d, step %d: %v, %v", i, step, got, err)
						}
					}
					if runs != 1 {
						t.Errorf("key %d ran %d times", i, runs)
					}
				}
			})
		}
	}
}

// While a server is over its memory limit new keys are refused, and what runs is settled.
func TestAFullServerSettlesWhatItGranted(t *testing.T) {
	t.Parallel()
	client := spawn(t).dial()
	s := setupOn(t, client)
	renewed, completed, released, uncertain := claimOf("renewed"), claimOf("completed"), claimOf("released"), guardOf("uncertain")
	for _, p := range []driver.ClaimParams{renewed, completed, released} {
		s.mustClaim(p, driver.DecisionClaimed)
	}
	won := s.mustClaim(uncertain, driver.DecisionClaimed)
	_, err := s.Complete(t.Context(), driver.CompleteParams{
		Key: uncertain.Key, Token: uncertain.Token, To: driver.StateUncertain, Retention: time.Hour, Format: 1,
	})
	must(t, err)
	do(t, client, "CONFIG", "SET", "maxmemory", "1kb")
	if _, err := s.Claim(t.Context(), claimOf("new")); !errors.Is(err, driver.ErrBusy) {
		t.Errorf("the claim of a new key returned %v, want ErrBusy", err)
	}
	waiter := claimOf("renewed")
	waiter.WaiterHint = true
	s.mustClaim(waiter, driver.DecisionInFlight)
	s.mustHold(renewed)
	s.mustComplete(completed, strings.Repeat("x", 1<<10))
	_, err = s.Release(t.Context(), driver.ReleaseParams{Key: released.Key, Token: released.Token})
	must(t, err)
	res, err := s.Resolve(t.Context(), driver.ResolveParams{
		Key: uncertain.Key, Fence: won.Fence, Action: driver.ResolveCompleted, Outcome: []byte("x"), Retention: time.Hour, Format: 1,
	})
	if err != nil || !res.Applied {
		t.Errorf("resolving: %+v, %v", res, err)
	}
	if got := s.mustClaim(claimOf("completed"), driver.DecisionCompleted); len(got.Outcome) != 1<<10 || s.life(completed.Key) == 0 {
		t.Errorf("%d bytes are kept for %v", len(got.Outcome), s.life(completed.Key))
	}
}

// Scripts that are flushed at any moment are sent again (R2).
func TestFlushedScriptsAreSentAgain(t *testing.T) {
	t.Parallel()
	client := spawn(t).dial()
	s := setupOn(t, client)
	op, err := idem.NewOperation("payments", s.Store, idem.AtMostOnce)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	flushed := make(chan struct{})
	go func() {
		defer close(flushed)
		for ctx.Err() == nil {
			_ = client.Do(ctx, client.B().ScriptFlush().Build())
		}
	}()
	parallel(8, func(worker int) {
		for i := range 200 {
			key := fmt.Sprint(worker, " ", i)
			for range 2 {
				got, err := idem.Execute(t.Context(), key, func(context.Context) (string, error) { return key, nil }, idem.On(op))
				if err != nil || got != key {
					t.Errorf("%s: %q, %v", key, got, err)
				}
			}
		}
	})
	claims := make([]driver.ClaimParams, 100)
	for i := range claims {
		claims[i] = claimOf(fmt.Sprint("batch", i))
	}
	res, err := s.ClaimBatch(t.Context(), driver.ClaimBatchParams{Claims: claims})
	must(t, err)
	for i, a := range res.Claims {
		if a.Err != nil || a.Result.Decision != driver.DecisionClaimed {
			t.Errorf("claim %d of a batch: %+v", i, a)
		}
	}
	cancel()
	<-flushed
}

func TestClassify(t *testing.T) {
	t.Parallel()
	client, p := through(t, standalone(t))
	fails := func(reply string) error {
		p.on(func(command []string) action {
			if command[0] == "GET" {
				return action{reply: reply}
			}
			return action{}
		})
		return client.Do(t.Context(), client.B().Arbitrary("GET", "x").Build()).Error()
	}
	for reply, want := range map[string]driver.FailureKind{
		"-READONLY You can't write":                                     driver.KindInfrastructure,
		"-LOADING Redis is loading":                                     driver.KindInfrastructure,
		"-OOM command not allowed":                                      driver.KindInfrastructure,
		"-NOAUTH Authentication":                                        driver.KindInfrastructure,
		"-WRONGTYPE Operation against":                                  driver.KindBug,
		"-ERR unknown command 'GETT'":                                   driver.KindBug,
		"-ERR syntax error":                                             driver.KindBug,
		"-ERR string exceeds maximum allowed size (proto-max-bulk-len)": driver.KindDomain,
		"-ERR value is not an integer or out of range":                  driver.KindUnknown,
		"-CUSTOM of a module":                                           driver.KindUnknown,
		"$-1":                                                           driver.KindUnknown, // nil
	} {
		err := fails(reply)
		for _, err := range []error{err, fmt.Errorf("wrapped: %w", err)} {
			if got := idemredis.Classify(err); got != want {
				t.Errorf("Classify(%v) is %v, want %v", err, got, want)
			}
		}
	}
	for err, want := range map[error]driver.FailureKind{
		nil: driver.KindUnknown, io.EOF: driver.KindUnknown, context.Canceled: driver.KindUnknown,
		rueidis.ErrClosing: driver.KindInfrastructure, rueidis.ErrNoSlot: driver.KindInfrastructure,
	} {
		if got := idemredis.Classify(err); got != want {
			t.Errorf("Classify(%v) is %v, want %v", err, got, want)
		}
	}
}

// A client that was closed is an error, for whoever asks or watches.
func TestAClosedClientIsAnError(t *testing.T) {
	t.Parallel()
	c, err := rueidis.NewClient(standalone(t))
	must(t, err)
	s := setupOn(t, c)
	c.Close()
	if _, err := s.Claim(t.Context(), claimOf("key")); err == nil {
		t.Error("a claim succeeds")
	}
	if _, err := s.Watch(t.Context(), driver.WatchParams{Key: key("key"), Changed: func() {}}); err == nil {
		t.Error("a watch begins")
	}
	if _, err := s.List(t.Context(), driver.ListParams{Limit: 1}); err == nil {
		t.Error("a listing succeeds")
	}
}
