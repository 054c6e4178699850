package duplicates_test

import (
	"strconv"
	"testing"

	"github.com/idem-go/idem/driver"
	"github.com/idem-go/idem/internal/duplicates"
)

func TestKeyIsLikelyOnceItWasNoted(t *testing.T) {
	t.Parallel()
	g := duplicates.New()
	k := driver.Key{Scope: "s", ID: "k"}
	if g.Likely(k, 50) {
		t.Error("nothing was seen, and yet it is likely")
	}
	g.Note(k)
	if !g.Likely(k, 50) || g.Likely(driver.Key{Scope: "s", ID: "other"}, 50) {
		t.Error("the key that was noted is not the likely one")
	}
}

func TestShareFollowsWhatClaimsCameTo(t *testing.T) {
	t.Parallel()
	g := duplicates.New()
	for i := range 1000 {
		g.Count(driver.DecisionClaimed)
		if i%4 == 0 {
			g.Count(driver.DecisionCompleted)
		}
	}
	if !g.Frequent(10) || g.Frequent(40) {
		t.Error("a fifth of duplicates counts as less than 10 % or more than 40 %")
	}
	for range 1000 {
		g.Count(driver.DecisionInFlight)
	}
	if k := (driver.Key{ID: "never seen"}); !g.Likely(k, 90) {
		t.Error("where all are duplicates, a new key is not likely one")
	}
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	g := duplicates.New()
	for i := range 100_000 {
		g.Note(driver.Key{ID: strconv.Itoa(i)})
	}
	known := 0
	for i := range 100_000 {
		if g.Likely(driver.Key{ID: strconv.Itoa(i)}, 101) {
			known++
		}
	}
	if known == 0 || known > 1024 {
		t.Errorf("%d of 100,000 keys are remembered, want at most 1024", known)
	}
}
