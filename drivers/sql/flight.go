package idemsql

import (
	"context"
	"sync"
	"time"

	"github.com/idem-go/idem/driver"
)

// flights are the transactions of this store that hold, or ask for, a key. The
// database shows nobody else what they hold, and makes everybody wait who asks.
type flights struct {
	mu  sync.Mutex
	own map[driver.Key]*flight
}

type flight struct {
	granted chan struct{} // closed when the claim is granted
	ended   chan struct{} // closed when the transaction has ended, or was never needed

	// Written before granted is closed.
	claim driver.ClaimResult
	until time.Time
}

// enter makes the caller the only one in this process that asks the database
// for the key. If another one holds it, enter returns that; as long as another
// one only asks for it, it waits, without a connection.
func (fs *flights) enter(ctx context.Context, k driver.Key) (mine, other *flight, err error) {
	for {
		fs.mu.Lock()
		f := fs.own[k]
		if f == nil {
			f = &flight{granted: make(chan struct{}), ended: make(chan struct{})}
			if fs.own == nil {
				fs.own = map[driver.Key]*flight{}
			}
			fs.own[k] = f
			fs.mu.Unlock()
			return f, nil, nil
		}
		fs.mu.Unlock()
		select {
		case <-f.granted:
			return nil, f, nil
		case <-f.ended:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// leave ends what enter began.
func (fs *flights) leave(k driver.Key, f *flight) {
	fs.mu.Lock()
	delete(fs.own, k)
	fs.mu.Unlock()
	close(f.ended)
}

// grant tells the others that the claim was granted.
func (f *flight) grant(c driver.ClaimResult, lease time.Duration) {
	f.claim, f.until = c, time.Now().Add(lease)
	close(f.granted)
}

// answer is what the others are told. A transaction has no lease; what is left
// of the one that it asked for is the best guess at its end.
func (f *flight) answer(unit time.Duration) driver.ClaimResult {
	return driver.ClaimResult{
		Decision:  driver.DecisionInFlight,
		LeaseLeft: max(driver.RoundUp(time.Until(f.until), unit), unit),
		OnLapse:   f.claim.OnLapse,
		Format:    f.claim.Format,
		ClaimedAt: f.claim.ClaimedAt,
	}
}

// claimed answers a claim of a key that a transaction of this store holds.
func (fs *flights) claimed(k driver.Key, unit time.Duration) (driver.ClaimResult, bool) {
	fs.mu.Lock()
	f := fs.own[k]
	fs.mu.Unlock()
	if f == nil {
		return driver.ClaimResult{}, false
	}
	select {
	case <-f.granted:
		return f.answer(unit), true
	default:
		return driver.ClaimResult{}, false
	}
}
