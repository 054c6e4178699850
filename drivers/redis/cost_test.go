package idemredis_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	idemredis "github.com/idem-go/idem/drivers/redis"
)

// The cost table of the design, in commands on the wire.
func TestCommandsACall(t *testing.T) {
	t.Parallel()
	client, p := through(t, standalone(t))
	s := setupOn(t, client)
	check := func(what, want string, f func()) {
		t.Helper()
		if got := p.names(f); got != want {
			t.Errorf("%s sends %q, want %q", what, got, want)
		}
	}
	op, err := idem.NewOperation("payments", s.Store, idem.AtLeastOnce)
	must(t, err)
	guard, err := idem.NewOperation("guards", s.Store, idem.AtMostOnce)
	must(t, err)
	marker, err := idem.NewOperation("markers", s.Store, idem.AtMostOnce, idem.WithoutOutcomes())
	must(t, err)
	pay := func(on *idem.Operation, key string) func() {
		return func() {
			_, err := idem.Execute(t.Context(), key, func(context.Context) (int, error) { return 500, nil }, idem.On(on))
			must(t, err)
		}
	}
	pay(op, "before")() // the server may not know the scripts
	check("a first call", "EVALSHA EVALSHA", pay(op, "key"))
	check("a replay of what this process has done", "GET", pay(op, "key"))
	check("a guard's first call", "EVALSHA EVALSHA", pay(guard, "key"))
	check("a guard's replay", "GET", pay(guard, "key"))
	check("a guard without outcomes", "EVALSHA", pay(marker, "key"))

	claim := claimOf("renewed")
	s.mustClaim(claim, driver.DecisionClaimed)
	s.mustHold(claim)
	check("a renewal", "EVALSHA", func() { s.mustHold(claim) })
}

func TestWaitingForReplicasTakesOneMoreRoundTrip(t *testing.T) {
	t.Parallel()
	_, master := pair(t)
	client, p := through(t, master.options())
	s := setupOn(t, client, idemredis.WithWaitReplicas(1, 10*time.Second))
	s.mustClaim(claimOf("before"), driver.DecisionClaimed)
	claim := claimOf("key")
	got := p.of(func() { s.mustClaim(claim, driver.DecisionClaimed) })
	// The last two go out together.
	if len(got) != 3 || got[0][0] != "EVALSHA" || got[1][0] != "EVALSHA" || got[2][0] != "WAIT" {
		t.Errorf("a claim sends %q, want EVALSHA, and EVALSHA with WAIT", got)
	}
	s.mustComplete(claim, "x")
	if got := p.names(func() { s.mustClaim(claimOf("key"), driver.DecisionCompleted) }); got != "EVALSHA" {
		t.Errorf("a replay sends %q, want EVALSHA", got)
	}
}

// Clocks of the application never matter if no absolute time is ever sent (L9).
func TestNoTimeOfTheApplicationIsSent(t *testing.T) {
	t.Parallel()
	client, p := through(t, standalone(t))
	s := setupOn(t, client)
	sent := p.of(func() {
		claim := claimOf("key")
		claim.Tombstone, claim.WaiterHint = time.Hour, true
		won := s.mustClaim(claim, driver.DecisionClaimed)
		s.mustClaim(claimOf("key"), driver.DecisionInFlight)
		_, err := s.Renew(t.Context(), driver.RenewParams{Key: claim.Key, Token: claim.Token, Lease: time.Hour})
		must(t, err)
		s.mustComplete(claim, "x")
		_, err = s.Resolve(t.Context(), driver.ResolveParams{Key: claim.Key, Fence: won.Fence + 1, Action: driver.ResolveForget, Format: 1})
		must(t, err)
		released := claimOf("released")
		s.mustClaim(released, driver.DecisionClaimed)
		_, err = s.Release(t.Context(), driver.ReleaseParams{Key: released.Key, Token: released.Token, Keep: time.Hour})
		must(t, err)
		must(t, s.list(driver.ListParams{Limit: 10}))
	})
	now := time.Now()
	for _, command := range sent {
		for i, arg := range command {
			if i == 1 && command[0] == "EVAL" {
				continue // the text of a script that the server has not seen yet
			}
			n, err := strconv.ParseInt(arg, 10, 64)
			fence := i == 4 && len(command) == 10 // resolve.lua gets one, which came from the server
			for _, at := range []time.Time{time.Unix(n, 0), time.UnixMilli(n), time.UnixMicro(n), time.Unix(0, n)} {
				if err == nil && !fence && at.Sub(now).Abs() < 10*365*24*time.Hour {
					t.Errorf("%q has the time %v", command, at)
				}
			}
		}
	}
}
