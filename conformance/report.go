package conformance

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"
)

// reportFlag is set by whoever runs the tests, as in
// go test ./mydriver -conformance.report=$PWD/conformance.md.
var reportFlag = flag.String("conformance.report", "",
	"add what the suite finds to a Markdown matrix of cases and drivers in `file`, which one test process at a time may write")

// reports guards the file, and knows which columns this process has begun.
var reports = struct {
	mu    sync.Mutex
	begun map[[2]string]bool // by file and driver
}{begun: make(map[[2]string]bool)}

// findings collects what becomes of the cases of one run.
type findings struct {
	mu    sync.Mutex
	cells column
}

func (f *findings) add(name, cell string) {
	if cell == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cells[name] = cell
}

// cell is what a matrix says about the end of the case; empty: nothing, as it
// did not come to run.
func (c testCase) cell(knownFailures map[string]string, r *recorder) string {
	reason, known := knownFailures[c.name]
	switch {
	case r.Failed() && known:
		return knownFailure + reason
	case r.Failed() || known:
		return broken
	case r.Skipped() && !strings.Contains(r.text(), needsWord):
		return ""
	case r.Skipped():
		_, what, _ := strings.Cut(r.text(), needsWord)
		return needsWord + what
	default:
		return kept
	}
}

// publish writes the run's column, or compares it with what is there.
func (f *findings) publish(t testing.TB, h Harness) {
	t.Helper()
	driver := cmp.Or(h.Name, t.Name())
	reports.mu.Lock()
	defer reports.mu.Unlock()
	switch {
	case *reportFlag != "":
		if err := f.write(*reportFlag, driver); err != nil {
			t.Errorf("conformance: writing the report: %v", err)
		}
	case h.Report != "":
		f.compare(t, h.Report, driver)
	}
}

func (f *findings) write(file, driver string) error {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	m := parseMatrix(string(text))
	if id := [2]string{file, driver}; !reports.begun[id] { // what an earlier process found is out of date
		m[driver] = make(column)
		reports.begun[id] = true
	}
	m[driver].worse(f.cells)
	return os.WriteFile(file, []byte(m.String()), 0o644)
}

// compare wants the report to say what the run found. Cases that did not run
// are taken as they are.
func (f *findings) compare(t testing.TB, file, driver string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Errorf("conformance: %v; -conformance.report makes it", err)
		return
	}
	m := parseMatrix(string(text))
	if m[driver] == nil {
		m[driver] = make(column)
	}
	maps.Copy(m[driver], f.cells)
	if line, was, is, ok := difference(string(text), m.String()); !ok {
		t.Errorf("conformance: %s is out of date, -conformance.report makes it anew: line %d is\n%s\nand should be\n%s",
			file, line, was, is)
	}
}

// difference is the first line in which two texts differ.
func difference(a, b string) (line int, was, is string, same bool) {
	left, right := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range max(len(left), len(right)) {
		was, is = at(left, i), at(right, i)
		if was != is {
			return i + 1, was, is, false
		}
	}
	return 0, "", "", true
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return fmt.Sprintf("(there are %d lines)", len(lines))
}
