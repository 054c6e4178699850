package idemredis_test

import (
	"strconv"
	"testing"

	"github.com/redis/rueidis"

	"github.com/idem-go/idem/driver"
	idemredis "github.com/idem-go/idem/drivers/redis"
)

func TestNamesAreReadable(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p := claimOf("pay-42")
	s.mustClaim(p, driver.DecisionClaimed)
	if n, err := do(t, s.client, "EXISTS", s.prefix+"8:payments:pay-42").ToInt64(); err != nil || n != 1 {
		t.Errorf("the record has another name (%v)", err)
	}
}

// Braces choose a cluster's node. They neither merge records nor split one (R1).
func TestBracesAreBytesLikeOthers(t *testing.T) {
	t.Parallel()
	for name, options := range onOneAndMany {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := dial(t, options(t))
			for _, prefix := range []string{"", "{}", "{", "}", "{tag}", "}{"} {
				s, err := idemredis.New(client, idemredis.WithPrefix(newPrefix()+prefix))
				must(t, err)
				bracesAreBytes(t, s)
			}
		})
	}
}

func bracesAreBytes(t *testing.T, s *idemredis.Store) {
	t.Helper()
	var claims []driver.ClaimParams
	for _, braces := range []string{"{", "}", "{}", "}{", "{a}", "{b}", "{a}b", "a{b}", "{{a}}", "{}{a}", "{a", "a}", "a"} {
		for _, k := range []driver.Key{{Scope: "s", ID: braces}, {Scope: braces, ID: "i"}, {Scope: braces, ID: braces}} {
			p := claimOf("")
			p.Key = k
			claims = append(claims, p)
		}
	}
	res, err := s.ClaimBatch(t.Context(), driver.ClaimBatchParams{Claims: claims})
	must(t, err)
	for i, a := range res.Claims {
		if a.Err != nil || a.Result.Decision != driver.DecisionClaimed {
			t.Errorf("%q: %v, %v", claims[i].Key, a.Result.Decision, a.Err)
		}
		_, err := s.Complete(t.Context(), completionOf(claims[i], strconv.Itoa(i)))
		must(t, err)
	}
	for i, p := range claims {
		p.Token = newToken()
		if res, err := s.Claim(t.Context(), p); err != nil || string(res.Outcome) != strconv.Itoa(i) {
			t.Errorf("%q: outcome %q, %v; want %d", p.Key, res.Outcome, err, i)
		}
	}
}

func TestOverlappingPrefixes(t *testing.T) {
	t.Parallel()
	client, other := dial(t, standalone(t)), dial(t, standalone(t))
	for _, tc := range []struct {
		a, b   string // prefixes
		sa, b2 string // scopes
		want   bool
	}{
		{"idem:", "idem:", "x", "x", true},
		{"idem:", "idem:", "x", "y", false},
		{"idem:", "other:", "x", "x", false},
		{"idem:", "idem:eu:", "x", "x", false},   // no length begins with a letter
		{"idem:", "idem:8:", "x", "y", true},     // "8:" + "1:y:i" may go on as a scope of 8 bytes
		{"idem:", "idem:1", "x", "y", true},      // "1" + "2:…" is a length of 12
		{"idem:", "idem:25", "x", "y", true},     // "25" + "6:…" is one of 256
		{"idem:", "idem:26", "x", "y", false},    // 26x is too long for a scope
		{"idem:", "idem:2026:", "x", "y", false}, // likewise
		{"idem:", "idem:0", "x", "y", false},     // no length begins with 0
		{"idem:", "idem:{1}", "x", "y", false},
		{"idem:", "idem", "x", "x", false}, // ":" begins no length
	} {
		a, err := idemredis.New(client, idemredis.WithPrefix(tc.a))
		must(t, err)
		for _, c := range []rueidis.Client{client, other} {
			b, err := idemredis.New(c, idemredis.WithPrefix(tc.b))
			must(t, err)
			if got := a.Overlaps(driver.OverlapParams{Scope: tc.sa, Other: b, OtherScope: tc.b2}).Overlap; got != tc.want {
				t.Errorf("%q with %q and %q with %q overlap: %v, want %v", tc.a, tc.sa, tc.b, tc.b2, got, tc.want)
			}
			if got := b.Overlaps(driver.OverlapParams{Scope: tc.b2, Other: a, OtherScope: tc.sa}).Overlap; got != tc.want {
				t.Errorf("the other way round %q and %q overlap: %v, want %v", tc.b, tc.a, got, tc.want)
			}
		}
	}
}

func TestOtherServersDoNotOverlap(t *testing.T) {
	t.Parallel()
	a, err := idemredis.New(dial(t, standalone(t)))
	must(t, err)
	b, err := idemredis.New(spawn(t).dial())
	must(t, err)
	if a.Overlaps(driver.OverlapParams{Scope: "x", Other: b, OtherScope: "x"}).Overlap {
		t.Error("stores on two servers overlap")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	client := dial(t, standalone(t))
	for what, o := range map[string]idemredis.Option{
		"nil":                    nil,
		"an empty prefix":        idemredis.WithPrefix(""),
		"no outcome":             idemredis.WithMaxOutcome(0),
		"too large an outcome":   idemredis.WithMaxOutcome(idemredis.DefaultMaxOutcome + 1),
		"no replicas":            idemredis.WithWaitReplicas(0, 1e9),
		"a forgotten unit":       idemredis.WithWaitReplicas(1, 100),
		"a wait for ever":        idemredis.WithWaitAOF(0),
		"a risk that is none":    idemredis.WithAcceptedRisk(0),
		"a risk that may become": idemredis.WithAcceptedRisk(3),
	} {
		if s, err := idemredis.New(client, o); err == nil || s != nil {
			t.Errorf("%s: New = %v, %v; want an error", what, s, err)
		}
	}
	if s, err := idemredis.New(nil); err == nil || s != nil {
		t.Errorf("no client: New = %v, %v; want an error", s, err)
	}
}
