package idemredis_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/idem-go/idem/driver"
	idemredis "github.com/idem-go/idem/drivers/redis"
)

// remembering is a store that has completed key, and another one on the same
// records that has seen nothing; sent is what the first one sends.
func remembering(t *testing.T, c func(*driver.CompleteParams)) (s, other *bundle, sent func(func()) string) {
	t.Helper()
	client, p := through(t, standalone(t))
	s = setupOn(t, client)
	second, err := idemredis.New(dial(t, standalone(t)), idemredis.WithPrefix(s.prefix))
	must(t, err)
	claim := claimOf("key")
	s.mustClaim(claim, driver.DecisionClaimed)
	done := completionOf(claim, "x")
	c(&done)
	_, err = s.Complete(t.Context(), done)
	must(t, err)
	return s, &bundle{Store: second, t: t, client: s.client, prefix: s.prefix}, p.names
}

func TestOutcomeThatIsReadIsAnsweredAsTheScriptAnswersIt(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string]time.Duration{"an hour": time.Hour, "for ever": driver.RetainForever} {
		s, other, sent := remembering(t, func(c *driver.CompleteParams) { c.Retention = kept })
		var read driver.ClaimResult
		claim := claimOf("key")
		claim.Fingerprint = []byte("0123another")
		if got := sent(func() { read = s.mustClaim(claim, driver.DecisionCompleted) }); got != "GET" {
			t.Errorf("%s: a known outcome sends %q, want GET", name, got)
		}
		judged := other.mustClaim(claim, driver.DecisionCompleted)
		if d := read.LifeLeft - judged.LifeLeft; d.Abs() > time.Second {
			t.Errorf("%s: %v left, the script says %v", name, read.LifeLeft, judged.LifeLeft)
		}
		judged.DecidedAt, judged.LifeLeft, read.LifeLeft = time.Time{}, 0, 0
		if !reflect.DeepEqual(read, judged) {
			t.Errorf("%s: %+v, the script says %+v", name, read, judged)
		}
	}
}

// Only while the outcome is kept as long as its record does the record prove it.
func TestOutcomeThatMayBeOverIsJudgedByTheScript(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]func(*driver.CompleteParams){
		"a tombstone follows":         func(c *driver.CompleteParams) { c.Tombstone = time.Hour },
		"the fence is kept longer":    func(c *driver.CompleteParams) { c.Retention = driver.FenceMemory - time.Second },
		"it is over":                  func(c *driver.CompleteParams) { c.Retention = time.Microsecond },
		"it is over, and a tombstone": func(c *driver.CompleteParams) { c.Retention, c.Tombstone = time.Microsecond, time.Hour },
	} {
		s, other, sent := remembering(t, c)
		claim := claimOf("key")
		var mine driver.ClaimResult
		got := sent(func() {
			var err error
			mine, err = s.Claim(t.Context(), claim)
			must(t, err)
		})
		if got != "GET EVALSHA" {
			t.Errorf("%s: it sends %q, want GET EVALSHA", name, got)
		}
		again := claim // as the one that may have been granted
		judged, err := other.Claim(t.Context(), again)
		must(t, err)
		if mine.Decision != judged.Decision {
			t.Errorf("%s: %v, the script says %v", name, mine.Decision, judged.Decision)
		}
	}
	s, _, sent := remembering(t, func(*driver.CompleteParams) {})
	claim := claimOf("key")
	claim.Tombstone = time.Hour // nor is it looked for where there will be one
	if got := sent(func() { s.mustClaim(claim, driver.DecisionCompleted) }); got != "EVALSHA" {
		t.Errorf("a claim with a tombstone sends %q, want EVALSHA", got)
	}
}

func TestKeyThatWasForgottenElsewhereIsClaimedByWhoRemembersIt(t *testing.T) {
	t.Parallel()
	s, other, _ := remembering(t, func(*driver.CompleteParams) {})
	fence := other.mustClaim(claimOf("key"), driver.DecisionCompleted).Fence
	res, err := other.Resolve(t.Context(), driver.ResolveParams{Key: key("key"), Fence: fence, Action: driver.ResolveForget, Format: 1})
	if err != nil || !res.Applied {
		t.Fatalf("%+v, %v", res, err)
	}
	s.mustClaim(claimOf("key"), driver.DecisionClaimed)
}

func TestRecordThatIsReadIsNotTrustedBeforeItIsSound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at    int
		bytes string
		want  error
	}{
		"another magic":    {0, "IDEM", driver.ErrCorrupt},
		"a newer layout":   {4, "\x02", driver.ErrNewerFormat},
		"no such state":    {5, "\x09", driver.ErrCorrupt},
		"no such meaning":  {6, "\x09", driver.ErrCorrupt},
		"a newer format":   {16, "\x00\x00\x00\x09", driver.ErrNewerFormat},
		"no format":        {16, "\x00\x00\x00\x00", driver.ErrCorrupt},
		"no attempt":       {12, "\x00\x00\x00\x00", driver.ErrCorrupt},
		"a length too big": {10, "\xff\xff", driver.ErrCorrupt},
	} {
		s, _, _ := remembering(t, func(*driver.CompleteParams) {})
		must(t, s.client.Do(t.Context(), s.client.B().Setrange().Key(s.physical(key("key"))).Offset(int64(c.at)).Value(c.bytes).Build()).Error())
		if _, err := s.Claim(t.Context(), claimOf("key")); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	s, _, _ := remembering(t, func(*driver.CompleteParams) {})
	must(t, s.client.Do(t.Context(), s.client.B().Del().Key(s.physical(key("key"))).Build()).Error())
	must(t, s.client.Do(t.Context(), s.client.B().Lpush().Key(s.physical(key("key"))).Element("x").Build()).Error())
	if _, err := s.Claim(t.Context(), claimOf("key")); !errors.Is(err, driver.ErrCorrupt) {
		t.Errorf("a list: %v, want ErrCorrupt", err)
	}
}
