package idemsql

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// param is a parameter of a statement; its name is what templates write behind a colon.
type param int

const (
	pScope param = iota
	pID
	pToken
	pFingerprint
	pFormat
	pGuarantee
	pOnLapse
	pLease     // µs
	pRetention // µs, nil: for ever
	pTombstone // µs, nil: for ever
	pKeep      // µs from the lease's end, or from now, until the row may go; nil: for ever
	pOutcome
	pTo       // the state to write
	pTookOver // 1 or 0
	pFresh    // 1: a new generation begins

	// What a compare-and-swap expects: the record that was read, and the time
	// in which what it was judged to be holds.
	pFence
	pState
	pBase  // the lease's end, or when the state came to be
	pFrom  // the clock is past this
	pUntil // and not past this

	pLock // the name of the key's lock
	pLimit
	pBatch
	paramCount
)

var paramNames = [paramCount]string{
	"scope", "id", "token", "fingerprint", "format", "guarantee", "on_lapse", "lease", "retention", "tombstone",
	"keep", "outcome", "to", "took_over", "fresh", "fence", "state", "base", "from", "until", "lock", "limit", "batch",
}

// args are the arguments of one execution.
type args [paramCount]any

// statement is a template made ready for a dialect and a table.
type statement struct {
	sql   string
	order []param // what the placeholders stand for
}

func (s *statement) bind(a *args) []any {
	list := make([]any, len(s.order))
	for i, p := range s.order {
		list[i] = a[p]
	}
	return list
}

var placeholder = regexp.MustCompile(`:([a-z_]+)`)

// compile fills in the table and the dialect's clock, and turns every :name
// into the dialect's placeholder. Where placeholders have numbers, a parameter
// that occurs twice is sent once.
func (d *dialect) compile(template string, c *config) statement {
	var st statement
	const rest = ", token, fingerprint, outcome"
	seen := strings.Replace(d.head, d.now, cmp.Or(d.began, d.now), 1)
	text := strings.NewReplacer("{table}", c.table, "{now}", d.now, "{record}", d.head+rest, "{seen}", seen+rest,
		"{memory}", strconv.FormatInt(fenceMemory, 10), "{idle}", strconv.FormatInt(c.idle.Milliseconds(), 10)).Replace(template)
	st.sql = placeholder.ReplaceAllStringFunc(text, func(name string) string {
		p := param(slices.Index(paramNames[:], name[1:]))
		if p < 0 {
			panic(fmt.Sprintf("idemsql: no parameter %s in %s", name, template))
		}
		if d.numbered == "" {
			st.order = append(st.order, p)
			return "?"
		}
		i := slices.Index(st.order, p)
		if i < 0 {
			i = len(st.order)
			st.order = append(st.order, p)
		}
		return d.numbered + strconv.Itoa(i+1)
	})
	return st
}
