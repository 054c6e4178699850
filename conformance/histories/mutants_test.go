package histories

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem/conformance/internal/tiny"
	"github.com/idem-go/idem/driver"
)

// mutant is a small driver that breaks one rule: before stands in front of
// its methods, and sees the record under the store's lock.
type mutant struct {
	*tiny.Store

	claim                    func(m mutant, p *driver.ClaimParams)
	complete, renew, release func(r *tiny.Record, t driver.Token)
}

func (m mutant) tamper(k driver.Key, f func(r *tiny.Record)) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	if r, ok := m.Records[k]; ok {
		f(&r)
		m.Records[k] = r
	}
}

func (m mutant) Claim(ctx context.Context, p driver.ClaimParams) (driver.ClaimResult, error) {
	if m.claim != nil {
		m.claim(m, &p)
	}
	return m.Store.Claim(ctx, p)
}

func (m mutant) Complete(ctx context.Context, p driver.CompleteParams) (driver.CompleteResult, error) {
	if m.complete != nil {
		m.tamper(p.Key, func(r *tiny.Record) { m.complete(r, p.Token) })
	}
	return m.Store.Complete(ctx, p)
}

func (m mutant) Renew(ctx context.Context, p driver.RenewParams) (driver.RenewResult, error) {
	if m.renew != nil {
		m.tamper(p.Key, func(r *tiny.Record) { m.renew(r, p.Token) })
	}
	return m.Store.Renew(ctx, p)
}

func (m mutant) Release(ctx context.Context, p driver.ReleaseParams) (driver.ReleaseResult, error) {
	if m.release != nil {
		m.tamper(p.Key, func(r *tiny.Record) { m.release(r, p.Token) })
	}
	return m.Store.Release(ctx, p)
}

// anyToken drops the check of the token.
func anyToken(r *tiny.Record, t driver.Token) {
	if r.State == driver.StateClaimed {
		r.Token = t
	}
}

var mutants = map[string]mutant{
	"completes after a takeover": {complete: func(r *tiny.Record, t driver.Token) {
		if r.Attempt > 1 {
			anyToken(r, t)
		}
	}},
	"renews with any token":   {renew: anyToken},
	"releases with any token": {release: anyToken},
	"looks, then writes": {claim: func(m mutant, p *driver.ClaimParams) {
		m.Mu.Lock()
		state, end := m.Records[p.Key].At(time.Now())
		m.Mu.Unlock()
		if state == 0 || state == driver.StateReleased || state == driver.StateClaimed && !time.Now().Before(end) {
			time.Sleep(500 * time.Microsecond) // a round trip
			m.tamper(p.Key, func(r *tiny.Record) {
				if r.State == driver.StateClaimed && r.Token != p.Token {
					r.LeaseEnd, r.OnLapse = time.Time{}, driver.TakeOver
				}
			})
		}
	}},
	"takes over a live lease": {claim: func(m mutant, p *driver.ClaimParams) {
		m.tamper(p.Key, func(r *tiny.Record) {
			if r.State == driver.StateClaimed && r.Token != p.Token && time.Until(r.LeaseEnd) < 20*time.Millisecond {
				r.LeaseEnd = time.Time{}
			}
		})
	}},
	"takes over a lapsed guard": {claim: func(m mutant, p *driver.ClaimParams) {
		m.tamper(p.Key, func(r *tiny.Record) { r.OnLapse = driver.TakeOver })
	}},
	"takes over whatever the fingerprint": {claim: func(m mutant, p *driver.ClaimParams) {
		m.tamper(p.Key, func(r *tiny.Record) { r.Fingerprint = nil })
	}},
	"never takes over": {claim: func(m mutant, p *driver.ClaimParams) {
		m.tamper(p.Key, func(r *tiny.Record) {
			if r.State == driver.StateClaimed && r.Token != p.Token {
				r.LeaseEnd = time.Now().Add(time.Minute)
			}
		})
	}},
	"does not know its own token": {claim: func(m mutant, p *driver.ClaimParams) {
		m.tamper(p.Key, func(r *tiny.Record) {
			if r.State == driver.StateClaimed && r.Token == p.Token {
				r.Token[0]++
			}
		})
	}},
}

// within is how many histories a mutant may need.
const within = 500

// seed is what the mutants' histories begin with, so that a run repeats another.
const seed = 1

func TestMutants(t *testing.T) {
	t.Parallel()
	for name, m := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m.Store = tiny.New()
			n := search{seed: seed, count: within, parallel: 4, enough: 1}.explore(t, []driver.Driver{m, m, m})
			if n.broken == 0 {
				t.Fatalf("nothing was found: %s", n.summary(seed))
			}
			t.Logf("found by history %d\n%s", n.histories, n.shown[0])
		})
	}
}

func TestBrokenHistoryIsDrawn(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	m := mutants["takes over a live lease"]
	m.Store = tiny.New()
	n := search{seed: seed, count: within, parallel: 1, enough: 1, html: folder}.explore(t, []driver.Driver{m})
	files, err := filepath.Glob(filepath.Join(folder, "*.html"))
	if err != nil || n.broken == 0 || len(files) != n.broken {
		t.Fatal(n.summary(seed), files, err)
	}
	page, err := os.ReadFile(files[0])
	if err != nil || !strings.Contains(string(page), "Claimed") || !strings.Contains(n.shown[0], folder) {
		t.Errorf("%v\n%s", err, n.shown[0])
	}
}
