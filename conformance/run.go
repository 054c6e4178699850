package conformance

import (
	"strings"
	"testing"
	"testing/synctest"
)

// Run runs the suite against the harness's driver, each case as a subtest
// "group/rule-in-words". It returns when all cases have ended.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if err := h.check(); err != "" {
		t.Fatal("conformance: " + err)
	}
	found := &findings{cells: make(column)}
	cases := allCases()
	for len(cases) > 0 {
		group, _, _ := strings.Cut(cases[0].name, "/")
		n := 0
		for n < len(cases) && strings.HasPrefix(cases[n].name, group+"/") {
			n++
		}
		runGroup(t, h, group, cases[:n], found)
		cases = cases[n:]
	}
	found.publish(t, h)
}

// runGroup runs cases side by side. The group waits for them, so that the
// caller of [Run] can defer the end of what its harness uses.
func runGroup(t *testing.T, h Harness, group string, cases []testCase, found *findings) {
	t.Helper()
	t.Run(group, func(t *testing.T) {
		for _, c := range cases {
			t.Run(strings.TrimPrefix(c.name, group+"/"), func(t *testing.T) {
				t.Parallel()
				r := c.execute(t, h)
				found.add(c.name, c.cell(h.KnownFailures, r))
				c.report(t, h.KnownFailures, r)
			})
		}
	})
}

// check says what is wrong with the harness itself.
func (h Harness) check() string {
	if h.Open == nil {
		return "Harness.Open is required"
	}
	if (h.Effect == nil) != (h.Effects == nil) {
		return "Harness.Effect and Effects belong together"
	}
	names := make(map[string]bool)
	for _, c := range allCases() {
		names[c.name] = true
	}
	if h.Report != "" && h.Name == "" {
		return "Harness.Report needs a Name"
	}
	for name, reason := range h.KnownFailures {
		if !names[name] {
			return "KnownFailures names no case: " + name
		}
		if reason == "" {
			return "KnownFailures gives no reason for " + name
		}
	}
	return ""
}

// execute runs the case, and only records how it ends.
func (c testCase) execute(t *testing.T, h Harness) *recorder {
	if !h.Bubble {
		return c.recorded(t, h)
	}
	var r *recorder
	synctest.Test(t, func(t *testing.T) { r = c.recorded(t, h) })
	return r
}

func (c testCase) recorded(t *testing.T, h Harness) *recorder {
	return record(t, func(r *recorder) {
		s := newSuite(r, h)
		if what := c.needs.missing(s); what != "" {
			r.Skip(needsWord + what)
		}
		c.run(s)
	})
}

// report passes the end of the case on to the test.
func (c testCase) report(t testing.TB, knownFailures map[string]string, r *recorder) {
	t.Helper()
	reason, known := knownFailures[c.name]
	switch {
	case r.Failed() && known:
		t.Skipf("known failure: %s\n%s", reason, r.text())
	case r.Failed():
		t.Errorf("broken rule: %s\n%s", c.rule, r.text())
	case r.Skipped() && !known:
		t.Skipf("%s", r.text())
	case known:
		t.Errorf("this is in KnownFailures (%s), but it does not fail", reason)
	}
}
