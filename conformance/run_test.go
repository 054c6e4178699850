package conformance

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem/driver"
)

func TestCaseNamesAreStable(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	groups := []string{""}
	for _, c := range Cases() {
		group, rule, ok := strings.Cut(c.Name, "/")
		if !ok || rule == "" || strings.ToLower(c.Name) != c.Name || strings.ContainsAny(c.Name, " _") {
			t.Errorf("%q is no name of the form group/rule-in-words", c.Name)
		}
		if seen[c.Name] {
			t.Errorf("%q is there twice", c.Name)
		}
		seen[c.Name] = true
		if groups[len(groups)-1] != group {
			if slices.Contains(groups, group) {
				t.Errorf("the group %q is split", group)
			}
			groups = append(groups, group)
		}
		if !strings.HasSuffix(c.Rule, ".") || strings.Count(c.Rule, ". ") > 0 {
			t.Errorf("%s: the rule is not one sentence: %s", c.Name, c.Rule)
		}
	}
}

func TestRecorderObservesEveryEnd(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		run             func(r *recorder)
		failed, skipped bool
	}{
		"return": {run: func(*recorder) {}},
		"Errorf": {run: func(r *recorder) { r.Errorf("text") }, failed: true},
		"Fatal":  {run: func(r *recorder) { r.Fatal("text") }, failed: true},
		"panic":  {run: func(*recorder) { panic("text") }, failed: true},
		"Skip":   {run: func(r *recorder) { r.Skip("text") }, skipped: true},
		"Goexit": {run: func(*recorder) { runtime.Goexit() }, failed: true},
		"Fatal in a cleanup": {
			run:    func(r *recorder) { r.Cleanup(func() { r.Fatal("text") }) },
			failed: true,
		},
	} {
		cleaned := false
		r := record(t, func(r *recorder) {
			r.Cleanup(func() { cleaned = true })
			c.run(r)
		})
		if r.Failed() != c.failed || r.Skipped() != c.skipped || !cleaned {
			t.Errorf("%s: failed %v, skipped %v, cleaned up %v", what, r.Failed(), r.Skipped(), cleaned)
		}
	}
}

func TestHarnessIsChecked(t *testing.T) {
	t.Parallel()
	open := func(testing.TB) driver.Driver { return nil }
	known := Cases()[0].Name
	for what, h := range map[string]Harness{
		"Open":     {},
		"Effects":  {Open: open, Effect: (fault{}).harnessFor().Effect},
		"no case":  {Open: open, KnownFailures: map[string]string{"x/y": "reason"}},
		"reason":   {Open: open, KnownFailures: map[string]string{known: ""}},
		"required": {Peer: func(testing.TB, driver.Driver) driver.Driver { return nil }},
	} {
		if err := h.check(); !strings.Contains(err, what) {
			t.Errorf("check says %q, want something with %q", err, what)
		}
	}
	if err := (Harness{Open: open, KnownFailures: map[string]string{known: "reason"}}).check(); err != "" {
		t.Errorf("check says %q about a good harness", err)
	}
}

// verdict is the part of testing.T that a case's end is passed on to.
type verdict struct {
	testing.TB
	failed, skipped bool
	text            string
}

func (v *verdict) Helper() {}
func (v *verdict) Errorf(_ string, args ...any) {
	v.failed = true
	v.text = join(args)
}
func (v *verdict) Skipf(_ string, args ...any) {
	v.skipped = true
	v.text = join(args)
}

func join(args []any) string {
	var words []string
	for _, a := range args {
		if s, ok := a.(string); ok {
			words = append(words, s)
		}
	}
	return strings.Join(words, " ")
}

func TestKnownFailuresMustFail(t *testing.T) {
	t.Parallel()
	c := testCase{name: "group/case", rule: "The rule."}
	known := map[string]string{c.name: "the reason"}
	passes := record(t, func(*recorder) {})
	fails := record(t, func(r *recorder) { r.Error(errors.New("the cause")) })
	skips := record(t, func(r *recorder) { r.Skip("needs more") })
	for what, e := range map[string]struct {
		r               *recorder
		known           map[string]string
		failed, skipped bool
		text            string
	}{
		"pass":            {r: passes},
		"fail":            {r: fails, failed: true, text: "The rule."},
		"skip":            {r: skips, skipped: true, text: "needs more"},
		"known and pass":  {r: passes, known: known, failed: true, text: "the reason"},
		"known and fail":  {r: fails, known: known, skipped: true, text: "the cause"},
		"known and skips": {r: skips, known: known, failed: true, text: "the reason"},
	} {
		v := &verdict{TB: t}
		c.report(v, e.known, e.r)
		if v.failed != e.failed || v.skipped != e.skipped || !strings.Contains(v.text, e.text) {
			t.Errorf("%s: failed %v, skipped %v, %q", what, v.failed, v.skipped, v.text)
		}
	}
}
