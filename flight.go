package idem

import (
	"sync"
	"time"

	"github.com/idem-go/idem/driver"
)

// flights are the keys that this process is asking for, waiting for or running.
// The first call of a key leads: it alone asks the store. The others follow and
// are answered from here, so a hot key costs the store one question at a time.
type flights struct {
	mu sync.Mutex
	m  map[driver.Key]*flight
}

// phase is where a flight is.
type phase uint8

const (
	phaseAsking  phase = iota // the store has not answered yet
	phaseWaiting              // another process has the key; the leader polls
	phaseRunning              // the leader runs the function
	phaseOver                 // the leader has returned
)

// flight is one key of flights. Its fields are guarded by flights.mu.
type flight struct {
	landing
	changed chan struct{} // closed at the next change; nil: nobody follows
}

// landing is what followers see of a flight.
type landing struct {
	phase phase
	// res is what a follower is answered: in flight while waiting or running;
	// after that the stored outcome, or no decision: ask the store.
	res    driver.ClaimResult
	err    error     // over: the store's failure, the same for all who waited for its answer
	pollAt time.Time // waiting: when the store is asked next
	asked  time.Time // when the store was asked for res
}

// enter makes f the flight of the key, or returns the one that there is.
func (fs *flights) enter(key driver.Key, f *flight) *flight {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if other := fs.m[key]; other != nil {
		return other
	}
	if fs.m == nil {
		fs.m = make(map[driver.Key]*flight)
	}
	fs.m[key] = f
	return nil
}

// move tells the followers where f is.
func (fs *flights) move(f *flight, to landing) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f.landing = to
	f.wake()
}

// leave ends f; what it landed with is its answer to those who follow.
func (fs *flights) leave(key driver.Key, f *flight, at landing) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	delete(fs.m, key)
	at.phase = phaseOver
	f.landing = at
	f.wake()
}

func (f *flight) wake() {
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// look returns where f is, and a channel that is closed when that changes.
func (fs *flights) look(f *flight) (landing, <-chan struct{}) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f.changed == nil && f.phase != phaseOver {
		f.changed = make(chan struct{})
	}
	return f.landing, f.changed
}
