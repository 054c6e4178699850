package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/idem-go/idem/driver"
)

var inspectingCases = []testCase{
	{
		"inspecting/shows-the-record-as-it-is-now",
		"Inspect shows each record as the backend's clock sees it now, with what its claim and completion stored.",
		needs{leasesOrGuards, inspector}, inspectShows,
	},
	{
		"inspecting/shows-lapses",
		"To Inspect a lapsed lease is claimed with no lease left, and a lapsed guard is uncertain.",
		needs{inspector, leases, guards}, inspectShowsLapses,
	},
	{
		"inspecting/shows-expiry",
		"To Inspect a record past its retention is expired while its tombstone lasts, and then not there.",
		needs{leasesOrGuards, inspector}, inspectShowsExpiry,
	},
	{
		"inspecting/changes-nothing",
		"Inspect changes nothing.",
		needs{leasesOrGuards, inspector}, inspectChangesNothing,
	},
	{
		"inspecting/lists-every-record",
		"List goes through all records of a scope page by page, each at least once, and through all scopes if none is given.",
		needs{leasesOrGuards, lister}, listsEveryRecord,
	},
	{
		"inspecting/lists-by-state",
		"List with a state gives the records that have it now, and no others.",
		needs{leasesOrGuards, lister}, listsByState,
	},
	{
		"inspecting/limit-is-above-zero",
		"List with a limit below 1 is ErrInvalid.",
		needs{lister}, listLimitIsChecked,
	},
}

func (s *suite) inspect(k driver.Key) driver.InspectResult {
	i, _ := driver.As[driver.Inspector](s.d)
	res, err := i.Inspect(s.ctx, driver.InspectParams{Key: k})
	if err != nil {
		s.Fatalf("inspecting: %v", err)
	}
	return res
}

// shows wants a record in the state.
func (s *suite) shows(p driver.ClaimParams, want driver.State) driver.Record {
	res := s.inspect(p.Key)
	if !res.Found || res.Record.State != want {
		s.Fatalf("Inspect: found %v, %v; want %v", res.Found, res.Record.State, want)
	}
	return res.Record
}

func inspectShows(s *suite) {
	p := s.caller()
	p.Fingerprint = fingerprint("mine")
	if s.inspect(p.Key).Found {
		s.Errorf("there is a record before the first claim")
	}
	won := s.grant(p)
	r := s.shows(p, driver.StateClaimed)
	s.within("LeaseLeft", r.LeaseLeft, long)
	s.holds(r, p, won)

	done := s.complete(completion(p))
	r = s.shows(p, driver.StateCompleted)
	s.holds(r, p, won)
	s.within("LifeLeft", r.LifeLeft, long)
	s.sameTime("CompletedAt", r.CompletedAt, done.CompletedAt)
	if !bytes.Equal(r.Outcome, outcome) {
		s.Errorf("the outcome is %q, want %q", r.Outcome, outcome)
	}

	p.Key = key("released")
	won = s.grant(p)
	s.release(p)
	if r = s.shows(p, driver.StateReleased); r.Fence != won.Fence || r.Generation != won.Generation || r.Attempt != 1 {
		s.Errorf("the stub is %+v, the claim was %+v", r, won)
	}

	p.Key = key("uncertain")
	won = s.grant(p)
	s.complete(doubt(p))
	r = s.shows(p, driver.StateUncertain)
	s.holds(r, p, won)
	if r.LifeLeft != driver.RetainForever || len(r.Outcome) != 0 {
		s.Errorf("LifeLeft %v, outcome %q; want RetainForever, none", r.LifeLeft, r.Outcome)
	}
}

// holds wants the record to hold what the claim stored.
func (s *suite) holds(r driver.Record, p driver.ClaimParams, won driver.ClaimResult) {
	got := driver.Record{
		Key: r.Key, Guarantee: r.Guarantee, OnLapse: r.OnLapse, Fence: r.Fence, Generation: r.Generation,
		Attempt: r.Attempt, Fingerprint: r.Fingerprint, Format: r.Format,
	}
	want := driver.Record{
		Key: p.Key, Guarantee: p.Guarantee, OnLapse: p.OnLapse, Fence: won.Fence, Generation: won.Generation,
		Attempt: won.Attempt, Fingerprint: p.Fingerprint, Format: p.Format,
	}
	if !reflect.DeepEqual(got, want) {
		s.Errorf("the record is %+v, want %+v", got, want)
	}
	s.sameTime("ClaimedAt", r.ClaimedAt, won.ClaimedAt)
}

func inspectShowsLapses(s *suite) {
	p := lease(time.Millisecond)
	s.grant(p)
	g := guard(time.Millisecond)
	g.Key = key("guard")
	s.grant(g)
	s.pass(p.Lease)
	if r := s.shows(p, driver.StateClaimed); r.LeaseLeft != 0 {
		s.Errorf("LeaseLeft of a lapsed lease is %v, want 0", r.LeaseLeft)
	}
	if r := s.shows(g, driver.StateUncertain); r.LeaseLeft != 0 || r.LifeLeft != driver.RetainForever || r.CompletedAt.IsZero() {
		s.Errorf("LeaseLeft %v, LifeLeft %v, CompletedAt %v of a lapsed guard; want 0, RetainForever, the lease's end",
			r.LeaseLeft, r.LifeLeft, r.CompletedAt)
	}
}

func inspectShowsExpiry(s *suite) {
	if tombstones.met(s) {
		p := s.expired(long)
		r := s.shows(p, driver.StateExpired)
		s.within("LifeLeft", r.LifeLeft, long)
		if len(r.Outcome) != 0 || r.CompletedAt.IsZero() {
			s.Errorf("outcome %q, CompletedAt %v; want none, and the time", r.Outcome, r.CompletedAt)
		}
	}
	p := s.caller()
	p.Key = key("gone")
	s.grant(p)
	c := completion(p)
	c.Retention = time.Millisecond
	s.complete(c)
	s.pass(c.Retention)
	if res := s.inspect(p.Key); res.Found {
		s.Errorf("a record past everything is still found, as %v", res.Record.State)
	}
}

func inspectChangesNothing(s *suite) {
	p := s.caller()
	s.grant(p)
	s.unchanged(p, func() { s.inspect(p.Key) })
	s.complete(completion(p))
	s.unchanged(p, func() { s.inspect(p.Key) })
}

// list collects all pages, and wants each to be within the limit.
func (s *suite) list(p driver.ListParams) map[driver.Key]driver.State {
	l, _ := driver.As[driver.Lister](s.d)
	all := make(map[driver.Key]driver.State)
	for range 100 {
		res, err := l.List(s.ctx, p)
		if err != nil {
			s.Fatalf("listing: %v", err)
		}
		if len(res.Records) > p.Limit {
			s.Errorf("a page has %d records, the limit is %d", len(res.Records), p.Limit)
		}
		for _, r := range res.Records {
			all[r.Key] = r.State
		}
		if res.Next == "" {
			return all
		}
		p.After = res.Next
	}
	s.Fatal("the listing has no last page")
	return nil
}

func listsEveryRecord(s *suite) {
	want := map[string]map[driver.Key]driver.State{"": {}, "a": {}, "a:": {}, "b\x00": {}}
	for scope := range want {
		if scope == "" {
			continue
		}
		for i := range 5 {
			p := s.caller()
			p.Key = driver.Key{Scope: scope, ID: fmt.Sprint("ID:\x00", i)}
			s.grant(p)
			want[scope][p.Key] = driver.StateClaimed
			want[""][p.Key] = driver.StateClaimed
		}
	}
	for scope, records := range want {
		for _, limit := range []int{1, 5, 1000} {
			if got := s.list(driver.ListParams{Scope: scope, Limit: limit}); !reflect.DeepEqual(got, records) {
				s.Errorf("scope %q, limit %d: %d records %v, want %d", scope, limit, len(got), got, len(records))
			}
		}
	}
}

func listsByState(s *suite) {
	want := make(map[driver.Key]driver.State)
	for state, end := range map[driver.State]func(p driver.ClaimParams){
		driver.StateClaimed:   func(driver.ClaimParams) {},
		driver.StateCompleted: func(p driver.ClaimParams) { s.complete(completion(p)) },
		driver.StateUncertain: func(p driver.ClaimParams) { s.complete(doubt(p)) },
		driver.StateReleased:  s.release,
	} {
		for i := range 3 {
			p := s.caller()
			p.Key = key(fmt.Sprint(state, i))
			s.grant(p)
			end(p)
			want[p.Key] = state
		}
	}
	if guards.met(s) {
		g := guard(time.Millisecond)
		g.Key = key("lapsed guard")
		s.grant(g)
		s.pass(g.Lease)
		want[g.Key] = driver.StateUncertain
	}
	for state := driver.StateClaimed; state <= driver.StateReleased; state++ {
		some := make(map[driver.Key]driver.State)
		for k, st := range want {
			if st == state {
				some[k] = st
			}
		}
		if got := s.list(driver.ListParams{State: state, Limit: 2}); !reflect.DeepEqual(got, some) {
			s.Errorf("%v: %v, want %v", state, got, some)
		}
	}
	if got := s.list(driver.ListParams{Limit: 2}); !reflect.DeepEqual(got, want) {
		s.Errorf("all states: %v, want %v", got, want)
	}
}

func listLimitIsChecked(s *suite) {
	l, _ := driver.As[driver.Lister](s.d)
	for _, limit := range []int{0, -1} {
		if _, err := l.List(s.ctx, driver.ListParams{Limit: limit}); !errors.Is(err, driver.ErrInvalid) {
			s.Errorf("List with a limit of %d returned %v, want ErrInvalid", limit, err)
		}
	}
}
