package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMain lets the test binary be the program itself, so that a test can run
// it as a process and have it killed.
func TestMain(m *testing.M) {
	if os.Getenv("QUICKSTART_CHILD") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestEachGuaranteeKeepsItsPromise(t *testing.T) {
	t.Parallel()
	const allOnce = "of 200 different orders: 199 charged once, 1 never, 0 more than once"
	for name, row := range map[string]struct{ first, second, afterCrash, charged string }{
		"at-least-once": {
			"199 ran, 32 replayed, 1 refused, 3 failed, 0 unknown", "0 ran, 231 replayed, 1 refused, 3 failed, 0 unknown",
			"100 ran, 131 replayed, 1 refused, 3 failed, 0 unknown", "198 charged once, 1 never, 1 more than once",
		},
		"at-most-once": {
			"199 ran, 32 replayed, 1 refused, 3 failed, 0 unknown", "0 ran, 231 replayed, 1 refused, 3 failed, 0 unknown",
			"99 ran, 131 replayed, 1 refused, 3 failed, 1 unknown", allOnce,
		},
		"exactly-once": {
			"199 ran, 32 replayed, 1 refused, 3 failed, 0 unknown", "0 ran, 231 replayed, 1 refused, 3 failed, 0 unknown",
			"100 ran, 131 replayed, 1 refused, 3 failed, 0 unknown", allOnce,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			says := func(want []string, args ...string) {
				t.Helper()
				out := quickstart(t, append(args, "-dir", dir, "-guarantee", name)...)
				for _, w := range want {
					if !strings.Contains(out, w) {
						t.Errorf("%q does not say %q:\n%s", args, w, out[max(0, len(out)-400):])
					}
				}
			}
			says([]string{row.first, allOnce})
			says([]string{row.second, allOnce})
			if out := quickstart(t, "-reset", "-crash-after", "100", "-dir", dir, "-guarantee", name); strings.Contains(out, "different orders") {
				t.Fatal("it did not crash")
			}
			says([]string{row.afterCrash, row.charged})
		})
	}
}

// quickstart runs the program and returns what it printed.
func quickstart(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), "QUICKSTART_CHILD=1")
	out, _ := cmd.CombinedOutput() // the crash ends it with an error
	return string(out)
}
