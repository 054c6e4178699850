package idemredis_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	idemredis "github.com/idem-go/idem/drivers/redis"
)

// verdictOf is what Verify says to a guarantee: the warnings or the error, and whether it is ErrUnfit.
func (b *bundle) verdictOf(g driver.Guarantee) (text string, unfit bool) {
	b.t.Helper()
	res, err := b.Verify(b.t.Context(), driver.VerifyParams{Guarantees: driver.GuaranteeSet(g)})
	if err != nil {
		return err.Error(), errors.Is(err, driver.ErrUnfit)
	}
	return strings.Join(res.Warnings, "\n"), false
}

// The settings that each guarantee is refused or warned on (R4).
func TestVerify(t *testing.T) {
	t.Parallel()
	const lease, guard = driver.AtLeastOnce, driver.AtMostOnce
	accepted := idemredis.WithAcceptedRisk(idemredis.RiskLostWrites)
	for name, tc := range map[string]struct {
		settings []string
		opts     []idemredis.Option
		g        driver.Guarantee
		unfit    bool
		text     string // in the error, or in a warning; empty: no warning
	}{
		"durable, lease": {durable, nil, lease, false, ""},
		"durable, guard": {durable, nil, guard, false, ""},

		"no append-only file, lease":    {nil, nil, lease, false, "appendonly yes"},
		"no append-only file, guard":    {nil, nil, guard, true, "appendonly yes"},
		"no append-only file, accepted": {nil, []idemredis.Option{accepted}, guard, false, "appendonly yes"},
		"no append-only file, replicas": {nil, []idemredis.Option{idemredis.WithWaitReplicas(1, time.Second)}, guard, true, "appendonly yes"},

		"everysec, lease":    {[]string{"--appendonly", "yes"}, nil, lease, false, "appendfsync always"},
		"everysec, guard":    {[]string{"--appendonly", "yes"}, nil, guard, true, "appendfsync always"},
		"everysec, accepted": {[]string{"--appendonly", "yes"}, []idemredis.Option{accepted}, guard, false, "appendfsync always"},
		"everysec, replicas": {
			[]string{"--appendonly", "yes"},
			[]idemredis.Option{idemredis.WithWaitReplicas(1, time.Second)}, guard, false, "appendfsync is everysec",
		},
		"never fsync, replicas": {
			[]string{"--appendonly", "yes", "--appendfsync", "no"},
			[]idemredis.Option{idemredis.WithWaitReplicas(1, time.Second)}, guard, true, "appendfsync is no",
		},
		"WAITAOF without a file": {nil, []idemredis.Option{idemredis.WithWaitAOF(time.Second)}, lease, true, "WithWaitAOF"},

		"evicting, lease": {with(durable, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"), nil, lease, false, "maxmemory-policy noeviction"},
		"evicting, guard": {with(durable, "--maxmemory", "100mb", "--maxmemory-policy", "volatile-ttl"), nil, guard, true, "maxmemory-policy noeviction"},
		"evicting, accepted": {
			with(durable, "--maxmemory", "100mb", "--maxmemory-policy", "volatile-ttl"),
			[]idemredis.Option{accepted}, guard, false, "maxmemory-policy noeviction",
		},
		"evicting without a limit": {with(durable, "--maxmemory-policy", "allkeys-lru"), nil, guard, false, ""},
		"limited, not evicting":    {with(durable, "--maxmemory", "100mb"), nil, guard, false, ""},
		"nearly full":              {with(durable, "--maxmemory", "900kb"), nil, guard, false, "Raise maxmemory"},

		"no CONFIG, lease":    {with(durable, "--rename-command", "CONFIG", ""), nil, lease, false, "forbids CONFIG GET"},
		"no CONFIG, guard":    {with(durable, "--rename-command", "CONFIG", ""), nil, guard, true, "forbids CONFIG GET"},
		"no CONFIG, accepted": {with(durable, "--rename-command", "CONFIG", ""), []idemredis.Option{accepted}, guard, false, "forbids CONFIG GET"},
		"no INFO, lease":      {with(durable, "--rename-command", "INFO", ""), nil, lease, false, "forbids INFO"},
		"no INFO, guard":      {with(durable, "--rename-command", "INFO", ""), nil, guard, true, "forbids INFO"},
		"no scripts":          {with(durable, "--rename-command", "EVALSHA", ""), nil, lease, true, "does not run scripts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setupOn(t, spawn(t, tc.settings...).dial(), tc.opts...)
			text, unfit := s.verdictOf(tc.g)
			if unfit != tc.unfit || !strings.Contains(text, tc.text) || tc.text == "" && text != "" {
				t.Errorf("unfit %v, %q; want %v, %q", unfit, text, tc.unfit, tc.text)
			}
			if accept := "WithAcceptedRisk(RiskLostWrites)"; tc.unfit && tc.g == guard && !strings.Contains(text, accept) {
				t.Errorf("%q does not say how to accept the risk", text)
			}
		})
	}
}

func with(settings []string, more ...string) []string {
	return append(slices.Clip(settings), more...)
}

func TestVerifyLooksAtReplicas(t *testing.T) {
	t.Parallel()
	replica, master := pair(t)
	c := master.dial()
	do(t, c, "CONFIG", "SET", "appendonly", "yes")
	do(t, c, "CONFIG", "SET", "appendfsync", "always")
	for name, tc := range map[string]struct {
		opts  []idemredis.Option
		g     driver.Guarantee
		unfit bool
		text  string
	}{
		"no wait, lease":    {nil, driver.AtLeastOnce, false, "WithWaitReplicas(1, …)"},
		"no wait, guard":    {nil, driver.AtMostOnce, true, "WithAcceptedRisk(RiskFailover)"},
		"no wait, accepted": {[]idemredis.Option{idemredis.WithAcceptedRisk(idemredis.RiskFailover)}, driver.AtMostOnce, false, "asynchronous"},
		"all":               {[]idemredis.Option{idemredis.WithWaitReplicas(1, time.Second)}, driver.AtMostOnce, false, ""},
		"too many":          {[]idemredis.Option{idemredis.WithWaitReplicas(2, time.Second)}, driver.AtMostOnce, false, "lower WithWaitReplicas"},
	} {
		text, unfit := setupOn(t, c, tc.opts...).verdictOf(tc.g)
		if unfit != tc.unfit || !strings.Contains(text, tc.text) || tc.text == "" && text != "" {
			t.Errorf("%s: unfit %v, %q; want %v, %q", name, unfit, text, tc.unfit, tc.text)
		}
	}
	if text, unfit := setupOn(t, replica.dial()).verdictOf(driver.AtLeastOnce); !unfit || !strings.Contains(text, "replica") {
		t.Errorf("a replica: unfit %v, %q", unfit, text)
	}
}

func TestVerifyLooksAtEveryMaster(t *testing.T) {
	t.Parallel()
	s := setupOn(t, dial(t, cluster(t)))
	text, unfit := s.verdictOf(driver.AtMostOnce)
	if nodes := strings.Count(text, "appendonly yes"); !unfit || nodes != 3 {
		t.Errorf("unfit %v, %d masters in %q", unfit, nodes, text)
	}
}

func TestVerifyOfAServerThatIsAwayIsNotUnfit(t *testing.T) {
	t.Parallel()
	server := spawn(t)
	s := setupOn(t, server.dial())
	server.kill()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := s.Verify(ctx, driver.VerifyParams{}); err == nil || errors.Is(err, driver.ErrUnfit) {
		t.Errorf("Verify returned %v, want another error than ErrUnfit", err)
	}
}

// Old servers and new ones that are not at hand, as their INFO shows them.
func TestVerifyReadsVersions(t *testing.T) {
	t.Parallel()
	for version, tc := range map[string]struct {
		aof   bool
		unfit bool
	}{
		"5.0.14": {false, true}, "6.0.16": {false, true}, "6.2.0": {false, false}, "6.2.14": {true, true},
		"7.0.15": {true, true}, "7.2.4": {true, false}, "8.0.0": {true, false}, "10.0.0": {true, false}, "255.255.255": {false, false},
	} {
		client, p := through(t, standalone(t))
		var opts []idemredis.Option
		if tc.aof {
			opts = append(opts, idemredis.WithWaitAOF(time.Second))
		}
		s := setupOn(t, client, opts...)
		info := "# Server\r\nredis_version:" + version + "\r\n"
		p.on(func(command []string) action {
			if command[0] == "INFO" {
				return action{reply: "$" + strconv.Itoa(len(info)) + "\r\n" + info}
			}
			return action{}
		})
		text, unfit := s.verdictOf(driver.AtLeastOnce)
		if unfit != tc.unfit || unfit && !strings.Contains(text, version) {
			t.Errorf("%s: unfit %v, %q", version, unfit, text)
		}
	}
}

// A user with no more than the permissions that docs/redis.md lists.
func TestPermissions(t *testing.T) {
	t.Parallel()
	server := spawn(t, durable...)
	do(t, server.dial(), strings.Fields("ACL SETUSER app on >secret resetchannels &idem:* ~idem:* "+
		"+@connection +evalsha +eval +time +get +set +setrange +persist +publish +subscribe +unsubscribe +scan +info +config|get +wait")...)
	o := server.options()
	o.Username, o.Password = "app", "secret"
	s, err := idemredis.New(dial(t, o))
	must(t, err)
	b := &bundle{Store: s, t: t, prefix: idemredis.DefaultPrefix}
	if text, unfit := b.verdictOf(driver.AtMostOnce); unfit || text != "" {
		t.Errorf("unfit %v, %q", unfit, text)
	}
	changed := make(chan struct{}, 1)
	w, err := s.Watch(t.Context(), driver.WatchParams{Key: key("key"), Changed: func() { changed <- struct{}{} }})
	must(t, err)
	defer w.Stop()
	p := guardOf("key")
	b.mustClaim(p, driver.DecisionClaimed)
	waiter := guardOf("key")
	waiter.WaiterHint = true
	b.mustClaim(waiter, driver.DecisionInFlight)
	b.mustHold(p)
	b.mustComplete(p, "x")
	<-changed
	must(t, b.list(driver.ListParams{Limit: 10}))

	do(t, server.dial(), "ACL", "SETUSER", "app", "-evalsha")
	if text, unfit := b.verdictOf(driver.AtLeastOnce); !unfit || !strings.Contains(text, "docs/redis.md") {
		t.Errorf("without EVALSHA: unfit %v, %q", unfit, text)
	}
	do(t, server.dial(), "ACL", "SETUSER", "app", "+evalsha", "resetkeys")
	if text, unfit := b.verdictOf(driver.AtLeastOnce); !unfit || !strings.Contains(text, "docs/redis.md") {
		t.Errorf("without the keys: unfit %v, %q", unfit, text)
	}
	op, err := idem.NewOperation("payments", s, idem.AtLeastOnce)
	must(t, err)
	_, err = idem.Execute(t.Context(), "x", func(context.Context) (int, error) { return 1, nil }, idem.On(op))
	if !errors.Is(err, idem.ErrStore) {
		t.Errorf("a call without permission returned %v", err)
	}
}
