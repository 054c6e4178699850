package conformance

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/mutants.txt with what fails now, and its list in docs")

// mutantsFile has each mutant on a line, and under it, indented, exactly the
// cases that must fail.
const mutantsFile = "testdata/mutants.txt"

// TestMutants breaks one rule after the other: the cases in the table must
// fail, all others must pass.
func TestMutants(t *testing.T) {
	t.Parallel()
	if *update {
		updateMutants(t)
		updateGuide(t)
	}
	table := readMutants(t)
	for _, f := range allFaults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			want := table[f.name]
			if len(want) == 0 {
				t.Error("the table has no case that this mutant breaks")
			}
			got := f.breaks(t)
			for _, name := range got {
				if !slices.Contains(want, name) {
					t.Errorf("%s fails, and should pass", name)
				}
			}
			for _, name := range want {
				if !slices.Contains(got, name) {
					t.Errorf("%s passes, and should fail", name)
				}
			}
		})
	}
}

func TestEveryCaseIsBrokenByAMutant(t *testing.T) {
	t.Parallel()
	table := readMutants(t)
	for _, f := range allFaults() {
		delete(table, f.name)
	}
	for name := range table {
		t.Errorf("the table has a mutant that is not there: %s", name)
	}
	breakable := make(map[string]bool)
	for _, names := range readMutants(t) {
		for _, name := range names {
			breakable[name] = true
		}
	}
	for _, c := range Cases() {
		if !breakable[c.Name] {
			t.Errorf("no mutant breaks %s", c.Name)
		}
	}
}

func TestTheSoundDriverBreaksNothing(t *testing.T) {
	t.Parallel()
	if failed := (fault{}).breaks(t); len(failed) > 0 {
		t.Errorf("without a fault these fail:\n%s", strings.Join(failed, "\n"))
	}
}

// breaks lists the cases that fail, in the suite's order.
func (f fault) breaks(t *testing.T) []string {
	t.Helper()
	var failed []string
	for _, c := range allCases() {
		if c.execute(t, f.harnessFor()).Failed() {
			failed = append(failed, c.name)
		}
	}
	return failed
}

func readMutants(t *testing.T) map[string][]string {
	t.Helper()
	data, err := os.ReadFile(mutantsFile)
	if err != nil {
		t.Fatal(err)
	}
	table := make(map[string][]string)
	var mutant string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "\t"); ok {
			table[mutant] = append(table[mutant], name)
		} else {
			mutant = line
		}
	}
	return table
}

func updateMutants(t *testing.T) {
	t.Helper()
	var b strings.Builder
	for _, f := range allFaults() {
		b.WriteString(f.name + "\n")
		for _, name := range f.breaks(t) {
			b.WriteString("\t" + name + "\n")
		}
	}
	if err := os.WriteFile(mutantsFile, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

func allFaults() []fault {
	return slices.Concat(capabilityFaults, claimFaults, settlingFaults, leaseFaults, takeoverFaults,
		fencingFaults, guardFaults, resolvingFaults, transactionFaults, expiryFaults, byteFaults,
		operatingFaults, contentionFaults)
}
