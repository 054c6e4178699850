package conformance

import (
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem/driver"
)

var abilityCases = []testCase{
	{
		"abilities/watcher-tells-of-changes",
		"A Watcher calls Changed after a completion that it watches for, in all but a few cases, and can be stopped twice.",
		needs{leasesOrGuards, watcher}, watcherTells,
	},
	{
		"abilities/classifier-knows-its-own-errors-only",
		"A Classifier answers KindUnknown for errors that are not its client's, and for nil.",
		needs{classifier}, classifierKnowsItsOwn,
	},
	{
		"abilities/overlapper-sees-the-same-records",
		"An Overlapper says that a scope overlaps itself, on the same handle and on a peer, and that it does not overlap another scope.",
		needs{overlapper}, overlapperSees,
	},
}

func watcherTells(s *suite) {
	w, _ := driver.As[driver.Watcher](s.d)
	for i := range 5 { // a notification may be lost
		p := s.caller()
		p.Key = key(fmt.Sprint("watched", i))
		s.grant(p)
		changed := make(chan struct{}, 100)
		res, err := w.Watch(s.ctx, driver.WatchParams{Key: p.Key, Changed: func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		}})
		if err != nil || res.Stop == nil {
			s.Fatalf("Watch: Stop is nil %v, %v", res.Stop == nil, err)
		}
		waiter := again(p)
		waiter.WaiterHint = true
		s.expect(driver.DecisionInFlight, waiter)
		for len(changed) > 0 { // what came before the completion does not count
			<-changed
		}
		s.complete(completion(p))
		select {
		case <-changed:
			res.Stop()
			res.Stop()
			return
		case <-time.After(atOnce):
			res.Stop()
			res.Stop()
		}
	}
	s.Errorf("none of 5 completions was told")
}

func classifierKnowsItsOwn(s *suite) {
	c, _ := driver.As[driver.Classifier](s.d)
	for _, err := range []error{nil, errors.New("a stranger"), fmt.Errorf("wrapped: %w", errors.New("a stranger"))} {
		if k := c.Classify(driver.ClassifyParams{Err: err}).Kind; k != driver.KindUnknown {
			s.Errorf("Classify(%v) is %v, want Unknown", err, k)
		}
	}
}

func overlapperSees(s *suite) {
	o, _ := driver.As[driver.Overlapper](s.d)
	for _, other := range s.handles(2) {
		if !o.Overlaps(driver.OverlapParams{Scope: "a", Other: other, OtherScope: "a"}).Overlap {
			s.Errorf("a scope does not overlap itself")
		}
		if o.Overlaps(driver.OverlapParams{Scope: "a", Other: other, OtherScope: "b"}).Overlap {
			s.Errorf("two scopes overlap")
		}
	}
}
