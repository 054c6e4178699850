package conformance

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/idem-go/idem/driver"
)

// long is a lease or retention that does not end during a case unless it
// advances the clock.
const long = time.Minute

// format is the record format that cases use where they do not say another.
const format = 1

// suite is what a case works with: a driver on empty data.
type suite struct {
	*recorder
	h     Harness
	d     driver.Driver
	caps  driver.Capabilities
	ctx   context.Context
	began time.Time
	ahead time.Duration // how much Advance went beyond the time that it took
}

func newSuite(r *recorder, h Harness) *suite {
	d := h.Open(r)
	if d == nil {
		r.Fatal("Harness.Open returned no driver")
	}
	return &suite{
		recorder: r, h: h, d: d, caps: d.Capabilities(), began: time.Now(),
		ctx: context.WithValue(r.Context(), driverKey{}, d),
	}
}

// peer is another handle on the same data.
func (s *suite) peer() driver.Driver {
	if s.h.Peer == nil {
		return s.d
	}
	return s.h.Peer(s, s.d)
}

// handles are n handles on the same data.
func (s *suite) handles(n int) []driver.Driver {
	list := []driver.Driver{s.d}
	for len(list) < n {
		list = append(list, s.peer())
	}
	return list
}

// now is the time since the case began, on a clock that Advance moves.
func (s *suite) now() time.Duration { return time.Since(s.began) + s.ahead }

func (s *suite) advance(d time.Duration) {
	if s.h.Advance == nil {
		time.Sleep(d)
		return
	}
	before := time.Now()
	s.h.Advance(s, d)
	s.ahead += max(0, d-time.Since(before))
}

// short is a lease or retention to wait for the end of.
func (s *suite) short() time.Duration { return max(100*time.Millisecond, 20*s.caps.ClockPrecision) }

// life is short for a run through the engine, which wants more than half of a
// lease left when the claim's reply is there: a busy machine takes its time.
func (s *suite) life() time.Duration {
	if s.h.timeIsFree() {
		return s.short()
	}
	return max(2*time.Second, s.short())
}

// pass advances the clock over d, which began before the call.
func (s *suite) pass(d time.Duration) { s.advance(d + 2*s.caps.ClockPrecision + time.Millisecond) }

// parallel runs f n times at once and waits.
func (s *suite) parallel(n int, f func(i int)) {
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			defer s.catch()
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

func newToken() (t driver.Token) {
	_, _ = rand.Read(t[:]) // never fails
	return t
}

func key(id string) driver.Key { return driver.Key{Scope: "conformance", ID: id} }

// lease are the parameters of a new caller of an at-least-once operation.
func lease(ttl time.Duration) driver.ClaimParams {
	return driver.ClaimParams{
		Key: key("key"), Token: newToken(), Lease: ttl, OnLapse: driver.TakeOver,
		Guarantee: driver.AtLeastOnce, Format: format,
	}
}

// guard are the parameters of a new caller of an at-most-once operation.
func guard(ttl time.Duration) driver.ClaimParams {
	p := lease(ttl)
	p.OnLapse, p.Guarantee, p.Retention = driver.Uncertain, driver.AtMostOnce, driver.RetainForever
	return p
}

// caller are the parameters of a new caller with a long lease, under a
// guarantee that the driver declares.
func (s *suite) caller() driver.ClaimParams {
	if s.caps.Guarantees.Has(driver.AtLeastOnce) {
		return lease(long)
	}
	return guard(long)
}

// again is p as another caller sends it.
func again(p driver.ClaimParams) driver.ClaimParams {
	p.Token = newToken()
	return p
}

func fingerprint(s string) []byte { return []byte("v1: " + s) }

// try claims through the driver under test.
func (s *suite) try(p driver.ClaimParams) driver.ClaimResult { return s.tryOn(s.d, p) }

func (s *suite) tryOn(d driver.Driver, p driver.ClaimParams) driver.ClaimResult {
	res, err := d.Claim(s.ctx, p)
	if err != nil {
		s.Fatalf("claiming: %v", err)
	}
	return res
}

// expect claims and wants the decision.
func (s *suite) expect(d driver.Decision, p driver.ClaimParams) driver.ClaimResult {
	res := s.try(p)
	if res.Decision != d {
		s.Fatalf("the claim's decision is %v, want %v", res.Decision, d)
	}
	return res
}

// grant claims and wants the claim to be granted.
func (s *suite) grant(p driver.ClaimParams) driver.ClaimResult {
	return s.expect(driver.DecisionClaimed, p)
}

var outcome = []byte("outcome")

func completion(p driver.ClaimParams) driver.CompleteParams {
	return driver.CompleteParams{
		Key: p.Key, Token: p.Token, To: driver.StateCompleted, Outcome: outcome,
		Retention: long, Format: p.Format,
	}
}

func doubt(p driver.ClaimParams) driver.CompleteParams {
	c := completion(p)
	c.To, c.Outcome, c.Retention = driver.StateUncertain, nil, driver.RetainForever
	return c
}

func (s *suite) complete(c driver.CompleteParams) driver.CompleteResult {
	res, err := s.d.Complete(s.ctx, c)
	if err != nil {
		s.Fatalf("completing: %v", err)
	}
	return res
}

func (s *suite) tryRelease(p driver.ClaimParams) error {
	_, err := s.d.Release(s.ctx, driver.ReleaseParams{Key: p.Key, Token: p.Token, Keep: long})
	return err
}

func (s *suite) release(p driver.ClaimParams) {
	if err := s.tryRelease(p); err != nil {
		s.Fatalf("releasing: %v", err)
	}
}

func (s *suite) tryRenew(p driver.ClaimParams, d time.Duration) (driver.RenewResult, error) {
	return s.d.Renew(s.ctx, driver.RenewParams{Key: p.Key, Token: p.Token, Lease: d})
}

func (s *suite) renew(p driver.ClaimParams, d time.Duration) driver.RenewResult {
	res, err := s.tryRenew(p, d)
	if err != nil {
		s.Fatalf("renewing: %v", err)
	}
	return res
}

// lost wants each named call of the claim's owner to be ErrLost.
func (s *suite) lost(p driver.ClaimParams, calls ...string) {
	for _, call := range calls {
		var err error
		switch call {
		case "Complete":
			_, err = s.d.Complete(s.ctx, completion(p))
		case "Release":
			err = s.tryRelease(p)
		case "Renew":
			_, err = s.tryRenew(p, long)
		}
		if !errors.Is(err, driver.ErrLost) {
			s.Errorf("%s returned %v, want ErrLost", call, err)
		}
	}
}

// unchanged wants a claim that is not granted to find the same before and
// after f.
func (s *suite) unchanged(p driver.ClaimParams, f func()) {
	look := func() driver.ClaimResult {
		res := s.try(again(p))
		if res.Decision == driver.DecisionClaimed {
			s.Fatal("another caller was granted the key")
		}
		return lasting(res)
	}
	before := look()
	f()
	if after := look(); !reflect.DeepEqual(before, after) {
		s.Errorf("the record has changed:\n  before %+v\n  after  %+v", before, after)
	}
}

// lasting is what of an answer does not depend on when it is given.
func lasting(res driver.ClaimResult) driver.ClaimResult {
	res.LeaseLeft, res.LifeLeft, res.DecidedAt = 0, 0, time.Time{}
	res.ClaimedAt, res.CompletedAt = res.ClaimedAt.UTC(), res.CompletedAt.UTC()
	if len(res.Fingerprint) == 0 {
		res.Fingerprint = nil
	}
	return res
}

// sameTime wants two times to be equal, but for a backend that rounds them or
// reads its clock twice in a statement.
func (s *suite) sameTime(what string, got, want time.Time) {
	if d := got.Sub(want).Abs(); d > max(s.caps.ClockPrecision, 5*time.Millisecond) {
		s.Errorf("%s is %v, want %v", what, got, want)
	}
}

// within wants 0 < d ≤ limit, with the precision that limit is rounded up to.
func (s *suite) within(what string, d, limit time.Duration) {
	if d <= 0 || d > driver.RoundUp(limit, s.caps.ClockPrecision) {
		s.Errorf("%s is %v, want more than 0 and at most %v", what, d, limit)
	}
}

// newID returns an ID that no other case uses, for effects that outlive a driver's data.
func newID() string {
	t := newToken()
	return hex.EncodeToString(t[:8])
}
