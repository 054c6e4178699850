package conformance

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// guideFile explains the mutants to authors of drivers. Between the marks it
// lists them all.
const (
	guideFile = "../docs/writing-a-driver.md"
	listBegin = "<!-- mutants -->\n"
	listEnd   = "<!-- end -->\n"
)

func TestGuideListsEveryMutant(t *testing.T) {
	t.Parallel()
	_, list, _ := readGuide(t)
	if list != mutantList(t) {
		t.Errorf("the list of mutants in %s is out of date: go test ./conformance -run TestMutants -update", guideFile)
	}
}

func TestGuideNamesMutantsThatAreThere(t *testing.T) {
	t.Parallel()
	table := readMutants(t)
	before, _, _ := readGuide(t)
	rows := 0
	for line := range strings.Lines(before) {
		cells := split(strings.TrimSpace(line))
		if len(cells) != 3 || cells[0] == "mistake" {
			continue
		}
		rows++
		for name := range strings.SplitSeq(cells[2], "; ") {
			if len(table[name]) == 0 {
				t.Errorf("there is no mutant that %s", name)
			}
		}
	}
	if rows == 0 {
		t.Error("the guide has no table of mistakes")
	}
}

func readGuide(t *testing.T) (before, list, after string) {
	t.Helper()
	text, err := os.ReadFile(guideFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), listBegin)
	list, after, closed := strings.Cut(rest, listEnd)
	if !ok || !closed {
		t.Fatalf("%s has no place for the list of mutants", guideFile)
	}
	return before, list, after
}

func updateGuide(t *testing.T) {
	t.Helper()
	before, _, after := readGuide(t)
	if err := os.WriteFile(guideFile, []byte(before+listBegin+mutantList(t)+listEnd+after), 0o600); err != nil {
		t.Fatal(err)
	}
}

// mutantList is a table of all mutants, in their order.
func mutantList(t *testing.T) string {
	t.Helper()
	table := readMutants(t)
	var b strings.Builder
	row(&b, "mutant", []string{"is found by", "and others"})
	ruler(&b, 2)
	for _, f := range allFaults() {
		if broken := table[f.name]; len(broken) > 0 {
			row(&b, f.name, []string{"`" + broken[0] + "`", strconv.Itoa(len(broken) - 1)})
		}
	}
	return b.String()
}
