package idemredis_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/idem-go/idem"
	idemredis "github.com/idem-go/idem/drivers/redis"
)

// A master is killed under load and a replica is promoted; the old master comes
// back as a replica. Nothing is answered from nowhere, every failure is typed,
// and a guard that waits for all replicas never runs a key twice.
func TestEffectsDuringAFailover(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes several seconds and 9 servers")
	}
	for name, start := range map[string]func(testing.TB) *group{"Sentinel": sentinelGroup, "cluster": clusterGroup} {
		type variant struct {
			g    idem.Guarantee
			wait bool
		}
		variants := []variant{{idem.AtLeastOnce, false}, {idem.AtMostOnce, true}}
		if size() >= 10 { // it measures what replication loses, which a short run does not meet
			variants = append(variants, variant{idem.AtMostOnce, false})
		}
		for _, tc := range variants {
			t.Run(fmt.Sprintf("%s, %v, WAIT %v", name, tc.g, tc.wait), func(t *testing.T) {
				t.Parallel()
				failOver(t, start(t), tc.g, tc.wait)
			})
		}
	}
}

func failOver(t *testing.T, group *group, g idem.Guarantee, wait bool) {
	t.Helper()
	var opts []idemredis.Option
	limit := 0
	if wait {
		opts = append(opts, idemredis.WithWaitReplicas(group.replicas, time.Second))
		limit = limitOf(g)
	}
	s := setupOn(t, dial(t, group.options), opts...)
	op, err := idem.NewOperation("payments", s.Store, g, idem.WithLeaseTTL(2*time.Second), idem.WithWait(5*time.Second))
	must(t, err)
	callers := 8 * min(size(), 8)
	load{callers: callers, op: op, disturb: func() {
		for range (size() + 4) / 5 {
			time.Sleep(300 * time.Millisecond)
			old := group.master()
			old.kill()
			for group.master() == nil {
				time.Sleep(20 * time.Millisecond)
			}
			time.Sleep(300 * time.Millisecond)
			old.start()
			group.settled()
		}
	}}.run(t).check(t, limit)
}

// group is servers that fail over by themselves.
type group struct {
	t        testing.TB
	options  rueidis.ClientOption
	nodes    []*server // that hold data
	replicas int       // of a master
	first    func(*server) bool
}

// master is the node that takes writes, or those of slot 0; nil: there is none.
func (g *group) master() *server {
	for _, n := range g.nodes {
		if n.cmd != nil && g.first(n) {
			return n
		}
	}
	return nil
}

// settled waits until every node is up and every replica connected.
func (g *group) settled() {
	g.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		masters, connected := 0, 0
		for _, n := range g.nodes {
			info, _ := n.ask("info", "replication")
			if strings.Contains(info, "role:master") {
				masters++
			} else if strings.Contains(info, "master_link_status:up") {
				connected++
			}
		}
		if masters*g.replicas == connected && masters+connected == len(g.nodes) {
			return
		}
		if time.Now().After(deadline) {
			g.t.Errorf("of %d nodes %d are masters and %d connected replicas", len(g.nodes), masters, connected)
			return
		}
	}
}

// ask sends a command by the server's own client, which waits for nothing.
func (s *server) ask(words ...string) (string, error) {
	args := append([]string{"-h", "127.0.0.1", "-p", strconv.Itoa(s.port)}, words...)
	out, err := exec.Command("redis-cli", args...).Output()
	return string(out), err
}

// sentinelGroup is a master with two replicas and three sentinels.
func sentinelGroup(t testing.TB) *group {
	t.Helper()
	sync := []string{"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0"}
	master := spawn(t, sync...)
	// The sentinels rewrite the roles in these files, which outlive a restart.
	nodes := []*server{master}
	for range 2 {
		nodes = append(nodes, spawn(t, with(sync, "--replicaof", "127.0.0.1 "+strconv.Itoa(master.port))...))
	}
	master.args = with(sync, "--replicaof", "127.0.0.1 "+strconv.Itoa(nodes[1].port)) // when it comes back
	g := &group{t: t, nodes: nodes, replicas: 2, first: func(s *server) bool {
		role, _ := s.ask("role")
		return strings.HasPrefix(role, "master")
	}}
	var sentinels []*server
	for range 3 {
		dir := t.TempDir()
		conf := filepath.Join(dir, "sentinel.conf")
		must(t, os.WriteFile(conf, fmt.Appendf(nil, "sentinel monitor idem 127.0.0.1 %d 2\n"+
			"sentinel down-after-milliseconds idem 700\nsentinel failover-timeout idem 4000\n"+
			"sentinel parallel-syncs idem 2\n", master.port), 0o600))
		s := &server{t: t, dir: dir, port: freePort(t), first: []string{conf}, args: []string{"--sentinel"}}
		t.Cleanup(s.kill)
		s.start()
		sentinels = append(sentinels, s)
		g.options.InitAddress = append(g.options.InitAddress, s.addr())
	}
	g.options = small(g.options)
	g.options.Sentinel.MasterSet = "idem"
	g.settled()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		ready := 0
		for _, s := range sentinels {
			known, _ := s.ask("--csv", "sentinel", "master", "idem")
			if strings.Contains(known, `"num-slaves","2"`) && strings.Contains(known, `"num-other-sentinels","2"`) {
				ready++
			}
		}
		if ready == len(sentinels) {
			return g
		}
		if time.Now().After(deadline) {
			t.Fatal("the sentinels do not find each other")
		}
	}
}

// clusterGroup is three masters with a replica each.
func clusterGroup(t testing.TB) *group {
	t.Helper()
	g := &group{t: t, replicas: 1, first: func(s *server) bool {
		role, _ := s.ask("role")
		slots, _ := s.ask("cluster", "nodes")
		for line := range strings.Lines(slots) {
			if strings.Contains(line, "myself,master") && strings.Contains(line, " 0-") {
				return strings.HasPrefix(role, "master")
			}
		}
		return false
	}}
	create := []string{"--cluster", "create"}
	for range 6 {
		s := spawn(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-require-full-coverage", "no",
			"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0")
		g.nodes = append(g.nodes, s)
		create = append(create, s.addr())
	}
	create = append(create, "--cluster-replicas", "1", "--cluster-yes")
	out, err := exec.CommandContext(t.Context(), "redis-cli", create...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	g.options = small(rueidis.ClientOption{InitAddress: create[2:8]})
	g.settled()
	for _, n := range g.nodes {
		for {
			if state, _ := n.ask("cluster", "info"); strings.Contains(state, "cluster_state:ok") {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	return g
}
