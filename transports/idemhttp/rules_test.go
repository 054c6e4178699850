package idemhttp_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/transports/idemhttp/internal/rules"
)

// TestRules is the table of CASES H over each store, guarantee and version of HTTP.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, st := range stores {
		for _, g := range st.guarantees {
			for _, http2 := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%v/http2=%v", st.name, g, http2), func(t *testing.T) {
					t.Parallel()
					rules.Setup{Open: st.open, Guarantee: g, HTTP2: http2}.Run(t)
				})
			}
		}
	}
}

// onMemory is for tests of what no store takes part in.
var onMemory = rules.Setup{Open: memory, Guarantee: idem.AtLeastOnce}

func TestTableInTheGuideIsTheOneThatIsTested(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/http.md")
	must(t, err)
	var want strings.Builder
	for _, row := range rules.Answers {
		fmt.Fprintln(&want, row)
	}
	if !strings.Contains(string(guide), "|---|---|---|---|\n"+want.String()+"\n") {
		t.Errorf("docs/http.md does not have this table:\n%s", want.String())
	}
}
