package conformance

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// What a cell of a matrix says, or begins with.
const (
	kept         = "✓"
	broken       = "**fails**"
	knownFailure = "known failure: "
	needsWord    = "needs "
)

// matrix is the suite's cases by drivers, as Markdown.
type matrix map[string]column // by driver

// column is what became of each case, by its name.
type column map[string]string

// severity orders cells: of two runs of one case the worse one counts.
func severity(cell string) int {
	switch {
	case cell == broken:
		return 3
	case strings.HasPrefix(cell, knownFailure):
		return 2
	case cell == kept:
		return 1
	default:
		return 0
	}
}

// worse adds another run of the same driver.
func (c column) worse(other column) {
	for name, cell := range other {
		if c[name] == "" || severity(cell) > severity(c[name]) {
			c[name] = cell
		}
	}
}

const matrixHead = `# Conformance

Each row is a case of [package conformance](https://pkg.go.dev/github.com/idem-go/idem/conformance) with the rule that it
holds a driver to. ` + kept + ` says that the rule was kept. "needs" says that the case does not apply, because the driver, or the
harness of its test, does not have what it names. The flag -conformance.report of go test makes this file.
`

// String is the whole report. The same results give the same text.
func (m matrix) String() string {
	drivers := slices.Sorted(maps.Keys(m))
	var b strings.Builder
	b.WriteString(matrixHead + "\n")
	row(&b, "", drivers)
	ruler(&b, len(drivers))
	for _, sum := range []struct {
		title    string
		severity int
	}{{"rules kept", 1}, {"not applicable", 0}, {"known failures", 2}, {"failures", 3}} {
		row(&b, sum.title, each(drivers, func(d string) string { return strconv.Itoa(m[d].count(sum.severity)) }))
	}
	group := ""
	for _, c := range Cases() {
		head, rest, _ := strings.Cut(c.Name, "/")
		if head != group {
			group = head
			b.WriteString("\n## " + group + "\n\n")
			row(&b, "case", drivers)
			ruler(&b, len(drivers))
		}
		row(&b, "**"+rest+"**<br>"+c.Rule, each(drivers, func(d string) string { return m[d][c.Name] }))
	}
	return b.String()
}

func (c column) count(severe int) (n int) {
	for _, one := range Cases() {
		if cell := c[one.Name]; cell != "" && severity(cell) == severe {
			n++
		}
	}
	return n
}

func each(list []string, f func(string) string) []string {
	all := make([]string, len(list))
	for i, s := range list {
		all[i] = f(s)
	}
	return all
}

var escape = strings.NewReplacer("|", `\|`, "\n", " ")

func row(b *strings.Builder, title string, cells []string) {
	b.WriteString("| " + escape.Replace(title))
	for _, c := range cells {
		b.WriteString(" | " + escape.Replace(c))
	}
	b.WriteString(" |\n")
}

func ruler(b *strings.Builder, columns int) {
	b.WriteString("|---" + strings.Repeat("|---", columns) + "|\n")
}

// parseMatrix reads what String wrote. Rows of cases that are no longer there
// mean nothing.
func parseMatrix(text string) matrix {
	m := make(matrix)
	var group string
	var drivers []string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if head, ok := strings.CutPrefix(line, "## "); ok {
			group = head
			continue
		}
		cells := split(line)
		switch {
		case len(cells) == 0 || group == "":
		case cells[0] == "case":
			drivers = cells[1:]
		case strings.HasPrefix(cells[0], "**") && len(cells) == len(drivers)+1:
			name, _, _ := strings.Cut(strings.TrimPrefix(cells[0], "**"), "**")
			for i, d := range drivers {
				if m[d] == nil {
					m[d] = make(column)
				}
				m[d][group+"/"+name] = cells[i+1]
			}
		}
	}
	return m
}

// split returns the cells of a row.
func split(line string) []string {
	inner, ok := strings.CutPrefix(line, "| ")
	if !ok {
		return nil
	}
	cells := strings.Split(strings.TrimSuffix(inner, " |"), " | ")
	return each(cells, func(s string) string { return strings.ReplaceAll(s, `\|`, "|") })
}
