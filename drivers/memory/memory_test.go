package idemmemory_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for _, o := range []idemmemory.Option{nil, idemmemory.WithMaxRecords(0), idemmemory.WithMaxRecords(-1)} {
		if s, err := idemmemory.New(o); err == nil || s != nil {
			t.Errorf("New(%v) = %v, %v; want an error", o, s, err)
		}
	}
}

func TestDroppedFencesStillRise(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, 1)
		var last int64
		for i := range 4 { // time stands still, each claim drops the stub of the other key
			res := s.claim(fmt.Sprint("key", i%2))
			if res.Fence <= last || res.Attempt != 1 {
				t.Errorf("fence %d, attempt %d after fence %d", res.Fence, res.Attempt, last)
			}
			last = res.Fence
			s.release(fmt.Sprint("key", i%2))
		}
	})
}

func TestLeasesSurviveTheirHolder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setup(t, 10)
		s.claim("key")
		time.Sleep(lease - time.Nanosecond)
		if d := s.claim("key").Decision; d != driver.DecisionInFlight {
			t.Errorf("a nanosecond before the end: %v", d)
		}
		time.Sleep(time.Nanosecond)
		if d := s.claim("key").Decision; d != driver.DecisionClaimed {
			t.Errorf("at the end: %v", d)
		}
	})
}

func TestHotPathAllocations(t *testing.T) { //nolint:paralleltest // it counts all allocations
	s := setup(t, 1_000_000)
	ids := make([]string, 2000)
	for i := range ids {
		ids[i] = fmt.Sprint("key", i)
	}
	i := 0
	run := testing.AllocsPerRun(1000, func() {
		s.claim(ids[i])
		s.complete(ids[i])
		i++
	})
	replay := testing.AllocsPerRun(1000, func() { s.claim(ids[0]) })
	if run > 2 || replay != 0 {
		t.Errorf("claim and completion allocate %v times, a replay %v; want at most 2 and 0", run, replay)
	}
}

const lease = time.Minute

// store wraps a store with one token for each key.
type store struct {
	*idemmemory.Store
	t      testing.TB
	tokens map[string]driver.Token
}

var tokens atomic.Uint64

func newToken() (t driver.Token) {
	binary.BigEndian.PutUint64(t[:], tokens.Add(1))
	return t
}

func setup(t testing.TB, maxRecords int) *store {
	t.Helper()
	s, err := idemmemory.New(idemmemory.WithMaxRecords(maxRecords))
	if err != nil {
		t.Fatal(err)
	}
	return &store{Store: s, t: t, tokens: make(map[string]driver.Token)}
}

func key(id string) driver.Key { return driver.Key{Scope: "scope", ID: id} }

func params(id string) driver.ClaimParams {
	return driver.ClaimParams{
		Key: key(id), Token: newToken(), Lease: lease, OnLapse: driver.TakeOver,
		Guarantee: driver.AtLeastOnce, Format: 1,
	}
}

func guard(id string) driver.ClaimParams {
	p := params(id)
	p.OnLapse, p.Guarantee, p.Retention = driver.Uncertain, driver.AtMostOnce, driver.RetainForever
	return p
}

func (s *store) claim(id string) driver.ClaimResult { return s.claimWith(params(id)) }

func (s *store) claimWith(p driver.ClaimParams) driver.ClaimResult {
	s.t.Helper()
	res, err := s.Claim(s.t.Context(), p)
	if err != nil {
		s.t.Fatalf("claiming %q: %v", p.Key.ID, err)
	}
	if res.Decision == driver.DecisionClaimed {
		s.tokens[p.Key.ID] = p.Token
	}
	return res
}

func (s *store) busy(id string) bool {
	_, err := s.Claim(s.t.Context(), params(id))
	return errors.Is(err, driver.ErrBusy)
}

var outcome = []byte("outcome")

func (s *store) complete(id string) { s.completeFor(id, time.Hour, 0) }

func (s *store) completeFor(id string, retention, tombstone time.Duration) {
	s.t.Helper()
	_, err := s.Complete(s.t.Context(), driver.CompleteParams{
		Key: key(id), Token: s.tokens[id], To: driver.StateCompleted, Outcome: outcome,
		Retention: retention, Tombstone: tombstone, Format: 1,
	})
	if err != nil {
		s.t.Fatalf("completing %q: %v", id, err)
	}
}

func (s *store) release(id string) {
	s.t.Helper()
	if _, err := s.Release(s.t.Context(), driver.ReleaseParams{Key: key(id), Token: s.tokens[id]}); err != nil {
		s.t.Fatalf("releasing %q: %v", id, err)
	}
}

func (s *store) has(id string) bool {
	s.t.Helper()
	res, err := s.Inspect(s.t.Context(), driver.InspectParams{Key: key(id)})
	if err != nil {
		s.t.Fatal(err)
	}
	return res.Found
}
