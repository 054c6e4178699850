package idemredis_test

import (
	"sync"
	"testing"

	"github.com/redis/rueidis"

	"github.com/idem-go/idem/conformance"
	"github.com/idem-go/idem/driver"
	idemredis "github.com/idem-go/idem/drivers/redis"
	"github.com/idem-go/idem/internal/testenv"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	conform(t, standalone(t))
}

func TestConformanceOnValkey(t *testing.T) {
	t.Parallel()
	conform(t, valkey(t))
}

func TestConformanceOnACluster(t *testing.T) {
	t.Parallel()
	conform(t, cluster(t))
}

func TestConformanceBehindSentinel(t *testing.T) {
	t.Parallel()
	o := several(t, testenv.RedisSentinel)
	o.Sentinel.MasterSet = "idem"
	conform(t, o)
}

// conform runs the suite with two clients.
func conform(t *testing.T, o rueidis.ClientOption) {
	t.Helper()
	h := &harness{first: dial(t, o), second: dial(t, o)}
	conformance.Run(t, conformance.Harness{Open: h.open, Peer: h.peer, Name: "Redis", Report: "../../docs/conformance.md"})
}

// harness opens stores on one of two clients.
type harness struct {
	first, second rueidis.Client
	prefixes      sync.Map // by driver
}

func (h *harness) open(t testing.TB) driver.Driver {
	t.Helper()
	return h.store(t, h.first, newPrefix())
}

// peer is what another process would open.
func (h *harness) peer(t testing.TB, d driver.Driver) driver.Driver {
	t.Helper()
	prefix, _ := h.prefixes.Load(d)
	return h.store(t, h.second, prefix.(string))
}

func (h *harness) store(t testing.TB, c rueidis.Client, prefix string) driver.Driver {
	t.Helper()
	// Outcomes of 512 MiB would hold up a server that others use as well.
	s, err := idemredis.New(c, idemredis.WithPrefix(prefix), idemredis.WithMaxOutcome(18<<20))
	must(t, err)
	h.prefixes.Store(s, prefix)
	return s
}
