package histories

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/idem-go/idem/driver"
)

// maxTokens is how many owners a key has step by step.
const maxTokens = 4

// checkSteps compares the driver with the model after each call of one client.
func checkSteps(t *testing.T, handles []driver.Driver) {
	t.Helper()
	caps := handles[0].Capabilities()
	m := model{precision: caps.ClockPrecision}
	run := newRun()
	keys := 0
	rapid.Check(t, func(rt *rapid.T) {
		keys++
		h := newHistory(0, fmt.Sprintf("%s-step-%d", run, keys))
		for range maxTokens {
			h.newToken()
		}
		states := []state{{}}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			c, pause := drawCall(rt, len(handles), caps)
			if pause > 0 {
				time.Sleep(pause)
				continue
			}
			a := h.do(t.Context(), handles[c.handle], c)
			c = h.calls[len(h.calls)-1] // with its times
			if a.unknown() {
				rt.Fatalf("%v → %s", c, a.text(c.method, 0))
			}
			if states = m.steps(states, c, a); len(states) == 0 {
				rt.Fatalf("%v → %s is not what the record can answer", c, a.text(c.method, 0))
			}
		}
	})
}

// drawCall draws a call, or a pause in which leases end.
func drawCall(rt *rapid.T, handles int, caps driver.Capabilities) (call, time.Duration) {
	what := rapid.SampledFrom([]method{claims, claims, claims, renews, releases, completes, doubts, ""}).Draw(rt, "method")
	c := call{method: what}
	if what == "" {
		return c, rapid.SampledFrom([]time.Duration{5 * time.Millisecond, 15 * time.Millisecond}).Draw(rt, "pause")
	}
	c.handle = rapid.IntRange(0, handles-1).Draw(rt, "handle")
	c.token = tokenNames[rapid.IntRange(0, maxTokens-1).Draw(rt, "token")]
	switch what {
	case claims:
		lapses := []driver.OnLapse{driver.TakeOver}
		if caps.Guarantees.Has(driver.AtMostOnce) {
			lapses = append(lapses, driver.Uncertain)
		}
		if !caps.Guarantees.Has(driver.AtLeastOnce) {
			lapses = lapses[1:]
		}
		c.onLapse = rapid.SampledFrom(lapses).Draw(rt, "lapse")
		c.fingerprint = rapid.SampledFrom(fingerprints).Draw(rt, "fingerprint")
		c.lease = drawLease(rt)
	case renews:
		c.lease = drawLease(rt)
	case completes:
		c.outcome = rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "outcome")
	case doubts, releases:
	}
	return c, 0
}

func drawLease(rt *rapid.T) time.Duration {
	return rapid.SampledFrom([]time.Duration{3 * time.Millisecond, 10 * time.Millisecond, time.Minute}).Draw(rt, "lease")
}
