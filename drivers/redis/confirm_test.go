package idemredis_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	idemredis "github.com/idem-go/idem/drivers/redis"
)

// pair is a master with a replica that is up to date. The first result is the replica.
func pair(t testing.TB) (replica, master *server) {
	t.Helper()
	master = spawn(t, "--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0")
	return replicaOf(t, master, master.port), master
}

// replicaOf is a replica that is up to date with the master, which it reaches through the port.
func replicaOf(t testing.TB, master *server, port int) *server {
	t.Helper()
	replica := spawn(t, "--replicaof", "127.0.0.1 "+strconv.Itoa(port))
	c := master.dial()
	for deadline := time.Now().Add(20 * time.Second); ; {
		confirmed := c.DoMulti(t.Context(), // both on one connection
			c.B().Set().Key("synchronised").Value("x").Build(),
			c.B().Wait().Numreplicas(1).Timeout(1000).Build(),
		)[1]
		if n, err := confirmed.ToInt64(); err == nil && n == 1 {
			return replica
		}
		if time.Now().After(deadline) {
			t.Fatal("the replica does not connect")
		}
	}
}

func TestAClaimWaitsForReplicas(t *testing.T) {
	t.Parallel()
	replica, master := pair(t)
	s := setupOn(t, master.dial(), idemredis.WithWaitReplicas(1, time.Second))
	for _, p := range []driver.ClaimParams{claimOf("lease"), guardOf("guard")} {
		s.mustClaim(p, driver.DecisionClaimed)
		found, err := do(t, replica.dial(), "EXISTS", s.physical(p.Key)).ToInt64()
		if err != nil || found != 1 {
			t.Errorf("the replica does not have the claim (%v)", err)
		}
	}

	must(t, replica.cmd.Process.Signal(syscall.SIGSTOP))
	p := claimOf("alone")
	if _, err := s.Claim(t.Context(), p); !errors.Is(err, driver.ErrBusy) {
		t.Errorf("the claim returned %v, want ErrBusy", err)
	}
	if _, err := s.Claim(t.Context(), p); !errors.Is(err, driver.ErrLost) {
		t.Errorf("the claim was not given back: claiming again returned %v", err)
	}
	op, err := idem.NewOperation("payments", s.Store, idem.AtMostOnce)
	must(t, err)
	_, err = idem.Execute(t.Context(), "never", func(context.Context) (int, error) {
		t.Error("fn ran")
		return 0, nil
	}, idem.On(op))
	if !errors.Is(err, idem.ErrStore) {
		t.Errorf("Execute returned %v, want ErrStore", err)
	}
	must(t, replica.cmd.Process.Signal(syscall.SIGCONT))
	p = claimOf("alone")
	for s.tryClaim(p) != nil {
		p = claimOf("alone")
	}
}

// A claim whose reply was lost wrote on a connection that is gone, of which
// WAIT on another one knows nothing.
func TestAClaimThatIsSentAgainWaitsToo(t *testing.T) {
	t.Parallel()
	replica, master := pair(t)
	c := master.dial()
	s := setupOn(t, c, idemredis.WithWaitReplicas(1, time.Second))
	hasty, err := idemredis.New(c, idemredis.WithPrefix(s.prefix))
	must(t, err)
	s.mustClaim(claimOf("before"), driver.DecisionClaimed)

	must(t, replica.cmd.Process.Signal(syscall.SIGSTOP))
	p := guardOf("key")
	_, err = hasty.Claim(t.Context(), p)
	must(t, err)
	if res, err := s.Claim(t.Context(), p); !errors.Is(err, driver.ErrBusy) {
		t.Errorf("a claim that no replica has is answered by %v, %v", res.Decision, err)
	}
	// The manual promises that WAIT waits for the writes of its connection, so there must be one.
	stats, err := do(t, c, "INFO", "commandstats").ToString()
	if err != nil || !strings.Contains(stats, "cmdstat_setrange:calls=2,") {
		t.Errorf("the two claims that were confirmed wrote nothing (%v):\n%s", err, stats)
	}
}

// A claim over an uncertain record must not end as a free key.
func TestAReconcilingClaimIsGivenBackAsUncertain(t *testing.T) {
	t.Parallel()
	c := spawn(t).dial()
	s := setupOn(t, c, idemredis.WithWaitReplicas(1, 10*time.Millisecond))
	hasty, err := idemredis.New(c, idemredis.WithPrefix(s.prefix))
	must(t, err)
	p := guardOf("key")
	won, err := hasty.Claim(t.Context(), p)
	must(t, err)
	_, err = hasty.Complete(t.Context(), driver.CompleteParams{
		Key: p.Key, Token: p.Token, To: driver.StateUncertain, Retention: driver.RetainForever, Format: 1,
	})
	must(t, err)
	over := guardOf("key")
	over.Over = won.Fence
	if _, err := s.Claim(t.Context(), over); !errors.Is(err, driver.ErrBusy) {
		t.Errorf("the claim returned %v, want ErrBusy", err)
	}
	s.mustClaim(guardOf("key"), driver.DecisionUncertain)
}

// Where the claim cannot be given back either, its error does not say that nothing took effect.
func TestAClaimThatCannotBeGivenBackIsUnknown(t *testing.T) {
	t.Parallel()
	client, p := through(t, spawn(t).options())
	s := setupOn(t, client, idemredis.WithWaitReplicas(1, 10*time.Millisecond))
	p.on(func(command []string) action {
		return action{before: command[0] == "EVALSHA" && len(command) == 6} // a release
	})
	claim := guardOf("key")
	if _, err := s.Claim(t.Context(), claim); err == nil || errors.Is(err, driver.ErrBusy) || errors.Is(err, driver.ErrConflict) {
		t.Errorf("the claim returned %v, want an unknown failure", err)
	}
	p.on(nil)
	s.mustHold(claim)
}

func TestAClaimWaitsForTheAppendOnlyFile(t *testing.T) {
	t.Parallel()
	c := dial(t, valkey(t))
	s := setupOn(t, c, idemredis.WithWaitAOF(2*time.Second))
	do(t, c, "CONFIG", "SET", "appendonly", "no")
	if _, err := s.Claim(t.Context(), claimOf("key")); err == nil {
		t.Error("a claim is granted without an append-only file")
	}
	do(t, c, "CONFIG", "SET", "appendonly", "yes")
	t.Cleanup(func() { _ = c.Do(context.Background(), c.B().Arbitrary("CONFIG", "SET", "appendonly", "no").Build()) })
	for s.tryClaim(claimOf("key")) != nil { // until the file has been rewritten
		if t.Context().Err() != nil {
			t.Fatal("no claim is confirmed")
		}
	}
}

// What a replica had not received is lost when it is promoted: the reason for
// WithWaitReplicas, and for Verify to refuse a guard without it.
func TestAFailoverLosesWhatNobodyWaitedFor(t *testing.T) {
	t.Parallel()
	master := spawn(t, "--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0")
	link := proxyOf(t, master.addr())
	replica := replicaOf(t, master, link.listener.Addr().(*net.TCPAddr).Port)
	link.mute()
	s := setupOn(t, master.dial())
	s.mustClaim(guardOf("key"), driver.DecisionClaimed)
	careful := setupOn(t, master.dial(), idemredis.WithWaitReplicas(1, 100*time.Millisecond))
	if _, err := careful.Claim(t.Context(), guardOf("key")); !errors.Is(err, driver.ErrBusy) {
		t.Errorf("a claim that waits returned %v, want ErrBusy", err)
	}
	master.kill()
	c := replica.dial()
	do(t, c, "REPLICAOF", "NO", "ONE")
	s.on(c).mustClaim(guardOf("key"), driver.DecisionClaimed) // it runs twice
}
