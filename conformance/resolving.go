package conformance

import (
	"bytes"
	"errors"
	"time"

	"github.com/idem-go/idem/driver"
)

var resolvingCases = []testCase{
	{
		"resolving/completed-settles-an-uncertain-record",
		"ResolveCompleted makes an uncertain record a completed one with the outcome; the old owner is ErrLost.",
		needs{guards, resolver}, resolveCompleted,
	},
	{
		"resolving/not-run-frees-an-uncertain-record",
		"ResolveNotRun makes an uncertain record a stub: the next claim is granted, the generation goes on; the old owner is ErrLost.",
		needs{guards, resolver}, resolveNotRun,
	},
	{
		"resolving/forget-starts-over",
		"ResolveForget makes any record but a live claim as if it had never been, but for the fence.",
		needs{leasesOrGuards, resolver}, resolveForget,
	},
	{
		"resolving/forgets-a-lapsed-lease",
		"ResolveForget applies to a lapsed lease, and the old owner is ErrLost.",
		needs{leases, resolver}, forgetLapsedLease,
	},
	{
		"resolving/swaps-by-the-fence",
		"Resolve with another fence than the record's changes nothing and says what there is.",
		needs{guards, resolver}, resolveSwapsByFence,
	},
	{
		"resolving/live-claim-is-never-resolved",
		"Resolve applies no action to a live claim, and says what is left of its lease.",
		needs{leasesOrGuards, resolver}, liveClaimIsNotResolved,
	},
	{
		"resolving/outcomes-are-not-replaced",
		"ResolveCompleted and ResolveNotRun do not apply to a completed record.",
		needs{leasesOrGuards, resolver}, outcomesAreNotReplaced,
	},
	{
		"resolving/absent-record-is-nothing",
		"Resolve of a key without a record is not applied and says that there is none.",
		needs{leasesOrGuards, resolver}, resolveAbsent,
	},
	{
		"resolving/newer-format-is-left-alone",
		"Resolve of a record in a newer format is ErrNewerFormat and changes nothing.",
		needs{guards, resolver}, resolveNewerFormat,
	},
}

var allActions = []driver.ResolveAction{driver.ResolveCompleted, driver.ResolveNotRun, driver.ResolveForget}

func resolution(p driver.ClaimParams, fence int64, a driver.ResolveAction) driver.ResolveParams {
	r := driver.ResolveParams{Key: p.Key, Fence: fence, Action: a, Format: format}
	if a == driver.ResolveCompleted {
		r.Outcome, r.Retention = []byte("resolved"), long
	}
	return r
}

func (s *suite) resolve(p driver.ResolveParams) driver.ResolveResult {
	r, _ := driver.As[driver.Resolver](s.d)
	res, err := r.Resolve(s.ctx, p)
	if err != nil {
		s.Fatalf("resolving: %v", err)
	}
	return res
}

// resolved wants the action to be applied.
func (s *suite) resolved(p driver.ClaimParams, fence int64, a driver.ResolveAction) {
	if res := s.resolve(resolution(p, fence, a)); !res.Applied {
		s.Fatalf("%v was not applied: there is %v with fence %d", a, res.State, res.Fence)
	}
}

// refused wants the action not to be applied, and the answer to be this.
func (s *suite) refused(p driver.ResolveParams, state driver.State, fence int64) driver.ResolveResult {
	res := s.resolve(p)
	if res.Applied || res.State != state || res.Fence != fence {
		s.Errorf("%v with fence %d: applied %v, %v, fence %d; want not applied, %v, %d",
			p.Action, p.Fence, res.Applied, res.State, res.Fence, state, fence)
	}
	return res
}

func resolveCompleted(s *suite) {
	p, won := s.lapsed()
	s.resolved(p, won.Fence, driver.ResolveCompleted)
	res := s.expect(driver.DecisionCompleted, again(p))
	if string(res.Outcome) != "resolved" || !bytes.Equal(res.Fingerprint, p.Fingerprint) {
		s.Errorf("outcome %q, fingerprint %q; want the resolution's and %q", res.Outcome, res.Fingerprint, p.Fingerprint)
	}
	s.within("LifeLeft", res.LifeLeft, long)
	s.unchanged(p, func() { s.lost(p, "Complete", "Release", "Renew") })
}

func resolveNotRun(s *suite) {
	p, won := s.lapsed()
	s.resolved(p, won.Fence, driver.ResolveNotRun)
	s.lost(p, "Complete", "Release", "Renew")
	res := s.grant(again(p))
	if res.Generation != won.Generation || res.Attempt != 2 || res.Fence <= won.Fence || res.TookOver {
		s.Errorf("generation %d, attempt %d, fence %d, TookOver %v; want %d, 2, above %d, no takeover",
			res.Generation, res.Attempt, res.Fence, res.TookOver, won.Generation, won.Fence)
	}
}

func resolveForget(s *suite) {
	for what, end := range map[string]func(p driver.ClaimParams){
		"completed": func(p driver.ClaimParams) { s.complete(completion(p)) },
		"uncertain": func(p driver.ClaimParams) { s.complete(doubt(p)) },
		"released":  s.release,
	} {
		p := s.caller()
		p.Key = key(what)
		p.Fingerprint = fingerprint("mine")
		won := s.grant(p)
		end(p)
		s.resolved(p, won.Fence, driver.ResolveForget)
		s.lost(p, "Complete", "Release", "Renew")
		res := s.grant(again(p))
		if res.Attempt != 1 || res.Generation != res.Fence || res.Fence <= won.Fence || res.TookOver {
			s.Errorf("%s, then forgotten: %+v; want a new generation with a fence above %d", what, res, won.Fence)
		}
	}
}

func forgetLapsedLease(s *suite) {
	p := lease(time.Millisecond)
	p.Fingerprint = fingerprint("mine")
	won := s.grant(p)
	s.pass(p.Lease)
	s.resolved(p, won.Fence, driver.ResolveForget)
	s.lost(p, "Complete", "Release", "Renew")
	other := again(p)
	other.Fingerprint = fingerprint("other")
	if res := s.grant(other); res.TookOver || res.Attempt != 1 {
		s.Errorf("TookOver %v, attempt %d after a forget", res.TookOver, res.Attempt)
	}
}

func resolveSwapsByFence(s *suite) {
	p, won := s.lapsed()
	s.unchanged(p, func() {
		for _, a := range allActions {
			for _, fence := range []int64{0, won.Fence - 1, won.Fence + 1} {
				s.refused(resolution(p, fence, a), driver.StateUncertain, won.Fence)
			}
		}
	})
	s.complete(completion(p)) // the owner is still there
}

func liveClaimIsNotResolved(s *suite) {
	p := s.caller()
	won := s.grant(p)
	s.unchanged(p, func() {
		for _, a := range allActions {
			res := s.refused(resolution(p, won.Fence, a), driver.StateClaimed, won.Fence)
			s.within("LeaseLeft", res.LeaseLeft, long)
		}
	})
	s.complete(completion(p))
}

func outcomesAreNotReplaced(s *suite) {
	p := s.caller()
	won := s.grant(p)
	s.complete(completion(p))
	s.unchanged(p, func() {
		for _, a := range []driver.ResolveAction{driver.ResolveCompleted, driver.ResolveNotRun} {
			s.refused(resolution(p, won.Fence, a), driver.StateCompleted, won.Fence)
		}
	})
}

func resolveAbsent(s *suite) {
	p := s.caller()
	for _, a := range allActions {
		s.refused(resolution(p, 1, a), 0, 0)
	}
	s.grant(p)
}

func resolveNewerFormat(s *suite) {
	p := guard(time.Millisecond)
	p.Format = format + 1
	won := s.grant(p)
	s.pass(p.Lease)
	r, _ := driver.As[driver.Resolver](s.d)
	s.unchanged(p, func() {
		for _, a := range allActions {
			if _, err := r.Resolve(s.ctx, resolution(p, won.Fence, a)); !errors.Is(err, driver.ErrNewerFormat) {
				s.Errorf("%v returned %v, want ErrNewerFormat", a, err)
			}
		}
	})
}
