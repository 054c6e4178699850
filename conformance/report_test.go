package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMatrixIsReadBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	m := matrix{"a | b": make(column), "c": make(column)}
	for i, c := range Cases() {
		m["a | b"][c.Name] = []string{kept, broken, knownFailure + "this | that", "needs a Lister"}[i%4]
		m["c"][c.Name] = kept
	}
	text := m.String()
	if again := parseMatrix(text).String(); again != text {
		line, was, is, _ := difference(text, again)
		t.Errorf("line %d was\n%s\nand is\n%s", line, was, is)
	}
	if len(parseMatrix("# Another text\n\n| a | table |\n")) != 0 {
		t.Error("a text without cases has a column")
	}
}

func TestCellSaysHowTheCaseEnded(t *testing.T) {
	t.Parallel()
	c := testCase{name: "group/case"}
	known := map[string]string{c.name: "the reason"}
	passes := record(t, func(*recorder) {})
	fails := record(t, func(r *recorder) { r.Fail() })
	for _, e := range []struct {
		r     *recorder
		known map[string]string
		want  string
	}{
		{r: passes, want: kept},
		{r: passes, known: known, want: broken},
		{r: fails, want: broken},
		{r: fails, known: known, want: knownFailure + "the reason"},
		{r: record(t, func(r *recorder) { r.Log("opened"); r.Skip("needs more") }), want: "needs more"},
		{r: record(t, func(r *recorder) { r.Skip("there is no server") }), want: ""},
	} {
		if got := c.cell(e.known, e.r); got != e.want {
			t.Errorf("the cell is %q, want %q", got, e.want)
		}
	}
}

func TestRunsOfOneNameShareAColumn(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "report.md")
	first, second := Cases()[0].Name, Cases()[1].Name
	stale := matrix{"shared": {first: broken}, "other": {first: kept}}
	if err := os.WriteFile(file, []byte(stale.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, cells := range []column{{first: kept, second: broken}, {first: "needs more", second: kept}} {
		if err := (&findings{cells: cells}).write(file, "shared"); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := matrix{"shared": {first: kept, second: broken}, "other": {first: kept}}
	if string(text) != want.String() {
		t.Errorf("the report is\n%s", text)
	}
}

func TestReportThatIsOutOfDateFails(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "report.md")
	name := Cases()[0].Name
	good := matrix{"mine": {name: kept}}.String()
	for what, e := range map[string]struct {
		text   string
		failed bool
	}{
		"as found":       {text: good},
		"another cell":   {text: strings.Replace(good, kept+" |", broken+" |", 1), failed: true},
		"another rule":   {text: strings.Replace(good, Cases()[0].Rule, "An old rule.", 1), failed: true},
		"no such column": {text: matrix{"yours": {name: kept}}.String(), failed: true},
		"no file":        {failed: true},
	} {
		_ = os.Remove(file)
		if e.text != "" {
			if err := os.WriteFile(file, []byte(e.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		v := &verdict{TB: t}
		(&findings{cells: column{name: kept}}).compare(v, file, "mine")
		if v.failed != e.failed {
			t.Errorf("%s: failed %v, %s", what, v.failed, v.text)
		}
	}
}
