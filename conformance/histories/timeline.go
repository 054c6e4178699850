package histories

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// order is what porcupine found out about a history.
type order struct {
	result porcupine.CheckResult
	model  porcupine.Model
	info   porcupine.LinearizationInfo
}

// searchTime is how long an order of one history's calls is looked for.
const searchTime = time.Minute

// check looks for an order of the calls that the model allows.
func (h *history) check(m model) order {
	base := h.base()
	nondeterministic := porcupine.NondeterministicModel{
		Init: func() []any { return []any{state{}} },
		Step: func(s, input, output any) (next []any) {
			for _, one := range m.step(s.(state), input.(call), output.(answer)) { //nolint:forcetypeassert // ours
				next = append(next, one)
			}
			return next
		},
		DescribeOperation: func(input, output any) string {
			c := input.(call)                                                //nolint:forcetypeassert // ours
			return c.String() + " → " + output.(answer).text(c.method, base) //nolint:forcetypeassert // ours
		},
		DescribeState: func(s any) string { return s.(state).String() }, //nolint:forcetypeassert // ours
	}
	o := order{model: nondeterministic.ToModel()}
	var end time.Duration // of all that is known; a call without an answer may come after it
	for _, c := range h.calls {
		if end = max(end, c.from); c.to != never {
			end = max(end, c.to)
		}
	}
	operations := make([]porcupine.Operation, len(h.calls))
	for i, c := range h.calls {
		operations[i] = porcupine.Operation{
			ClientId: c.client, Input: c, Call: int64(c.from), Output: h.answer[i], Return: int64(min(c.to, end+time.Second)),
		}
	}
	o.result, o.info = porcupine.CheckOperationsVerbose(o.model, operations, searchTime)
	return o
}

// base is the first fence that somebody was told.
func (h *history) base() int64 {
	for _, a := range h.answer {
		if a.claim.Fence != 0 {
			return a.claim.Fence
		}
	}
	return 0
}

func (s state) String() string {
	if s.is == 0 {
		return "no record"
	}
	return fmt.Sprintf("%v by %c, attempt %d, fence %d", s.is, s.token, s.attempt, s.fence)
}

// timeline is the history for a person, with where the longest order ends.
func (h *history) timeline(o order) string {
	type line struct {
		call

		text string
	}
	lines := make([]line, len(h.calls))
	for i, c := range h.calls {
		to := "?"
		if c.to != never {
			to = millis(c.to)
		}
		lines[i] = line{c, fmt.Sprintf("%9s … %9s ms  client %d on handle %d: %v → %s",
			millis(c.from), to, c.client, c.handle, c, h.answer[i].text(c.method, h.base()))}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return int(a.from - b.from) })
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "key %q, fences counted from %d, replay with -histories.count=1 -histories.seed=%d\n",
		h.key.ID, h.base(), h.seed)
	for _, l := range lines {
		b.WriteString(l.text + "\n")
	}
	var longest []porcupine.Operation
	for _, orders := range o.info.PartialLinearizationsOperations() {
		for _, one := range orders {
			if len(one) > len(longest) {
				longest = one
			}
		}
	}
	b.WriteString("the longest order that the contract allows:\n")
	for _, one := range longest {
		b.WriteString("  " + o.model.DescribeOperation(one.Input, one.Output) + "\n")
	}
	b.WriteString("and no other call may come next")
	return b.String()
}

func millis(d time.Duration) string { return fmt.Sprintf("%.3f", float64(d)/float64(time.Millisecond)) }
