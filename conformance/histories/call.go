package histories

import (
	"fmt"
	"math"
	"time"

	"github.com/idem-go/idem/driver"
)

// method is what a call does.
type method string

const (
	claims    method = "claim"
	renews    method = "renew"
	completes method = "complete"
	doubts    method = "complete to uncertain"
	releases  method = "release"
)

// never is the time of an answer that did not come.
const never = time.Duration(math.MaxInt64)

// call is one call of the driver. Times count from the history's beginning on
// the monotonic clock.
type call struct {
	client, handle int
	method         method
	token          byte // names one of the history's tokens; 0: none
	lease          time.Duration
	onLapse        driver.OnLapse
	fingerprint    string
	outcome        string

	from, to time.Duration
}

// answer is what the caller was told.
type answer struct {
	err   error // but for ErrLost
	lost  bool  // ErrLost
	claim driver.ClaimResult

	already bool
	left    time.Duration // of a renewed lease
}

// unknown reports whether the call may have happened or not.
func (a answer) unknown() bool { return a.err != nil }

func (c call) String() string {
	text := fmt.Sprintf("%s %c", c.method, c.token)
	switch c.method {
	case claims:
		text += fmt.Sprintf(" for %v, then %v", c.lease, c.onLapse)
		if c.fingerprint != "" {
			text += ", fingerprint " + c.fingerprint[driver.FingerprintPrefix:]
		}
	case renews:
		text += fmt.Sprintf(" for %v", c.lease)
	case completes:
		text += " with " + c.outcome
	case doubts, releases:
	}
	return text
}

// text says the answer to a call. Fences are told from base on.
func (a answer) text(m method, base int64) string {
	switch {
	case a.err != nil:
		return "no answer: " + a.err.Error()
	case a.lost:
		return "lost"
	case m == renews:
		return fmt.Sprintf("ok, %v left", a.left)
	case m != claims && a.already:
		return "ok, already"
	case m != claims:
		return "ok"
	}
	r := a.claim
	text := fmt.Sprintf("%v, fence %+d, generation %+d, attempt %d", r.Decision, r.Fence-base, r.Generation-base, r.Attempt)
	switch r.Decision {
	case driver.DecisionClaimed, driver.DecisionInFlight:
		text += fmt.Sprintf(", %v left", r.LeaseLeft)
	case driver.DecisionCompleted:
		text += ", " + string(r.Outcome)
	case driver.DecisionUncertain, driver.DecisionExpired:
	}
	if r.Own {
		text += ", own"
	}
	if r.TookOver {
		text += ", took over"
	}
	return text
}
