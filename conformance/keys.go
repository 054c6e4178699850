package conformance

import (
	"strconv"
	"strings"

	"github.com/idem-go/idem/driver"
)

var keyCases = []testCase{
	{
		"keys/bytes-distinguish",
		"Two keys are the same record only if their bytes are equal: case, accents, blanks, NUL and invalid UTF-8 all distinguish.",
		needs{leasesOrGuards}, keyBytesDistinguish,
	},
	{
		"keys/every-byte-distinguishes",
		"Each of the 256 byte values makes another key, at the start, in the middle and at the end.",
		needs{leasesOrGuards}, everyByteDistinguishes,
	},
	{
		"keys/scope-and-id-stay-apart",
		"Scope and ID are not merely joined: keys that would read the same when joined are different records.",
		needs{leasesOrGuards}, scopeAndIDStayApart,
	},
	{
		"keys/long-ones-are-whole",
		"Keys of MaxKeyPart bytes in both parts are taken, and distinct also if only the last byte differs.",
		needs{leasesOrGuards}, longKeysAreWhole,
	},
}

// distinct wants every key to have its own record, with its own outcome.
func (s *suite) distinct(keys []driver.Key) {
	seen := make(map[driver.Key]bool)
	for i, k := range keys {
		if seen[k] {
			s.Fatalf("the case has %q twice", k)
		}
		seen[k] = true
		p := s.caller()
		p.Key = k
		res, err := s.d.Claim(s.ctx, p)
		if err != nil || res.Decision != driver.DecisionClaimed {
			s.Errorf("claiming %q: %v, %v; want Claimed", k, res.Decision, err)
			continue
		}
		c := completion(p)
		c.Outcome = strconv.AppendInt(nil, int64(i), 10)
		s.complete(c)
	}
	for i, k := range keys {
		p := s.caller()
		p.Key = k
		if res := s.try(p); string(res.Outcome) != strconv.Itoa(i) {
			s.Errorf("the outcome of %q is %q, want %d", k, res.Outcome, i)
		}
	}
}

func keyBytesDistinguish(s *suite) {
	ids := []string{
		"Abc", "abc", "ABC", "abc ", " abc", "abc\t", "abc\n", "abc\x00",
		"ábc", "a\u0301bc", "ß", "ss", "SS", "ı", "i", "İ", "K", "\u212a",
		"a\x00b", "a\x00c", "a", "\x00", "\x00\x00", "\xff", "\xfe", "\xff\xfe", "\ufffd",
		"a%", "a_", "a'", `a"`, `a\`, "a\\\\", "{a}", "{}", "a*", "a?", "a:b", "a/b", "🔑", "🔑\ufe0f", "1", "01", "1.0",
	}
	var keys []driver.Key
	for _, id := range ids {
		keys = append(keys, key(id), driver.Key{Scope: id, ID: "id"})
	}
	s.distinct(keys)
}

func everyByteDistinguishes(s *suite) {
	var keys []driver.Key
	for b := range 256 {
		c := string([]byte{byte(b)})
		keys = append(keys, key(c+"tail"), key("mid"+c+"dle"), key("head"+c))
	}
	s.distinct(keys)
}

func scopeAndIDStayApart(s *suite) {
	s.distinct([]driver.Key{
		{Scope: "a:b", ID: "c"}, {Scope: "a", ID: "b:c"},
		{Scope: "a", ID: "bc"}, {Scope: "ab", ID: "c"},
		{Scope: "a\x00", ID: "b"}, {Scope: "a", ID: "\x00b"},
		{Scope: "1:a", ID: "b"}, {Scope: "1", ID: "a:b"},
		{Scope: "a/", ID: "b"}, {Scope: "a", ID: "/b"},
		{Scope: "first consumer", ID: "message"}, {Scope: "second consumer", ID: "message"},
	})
}

func longKeysAreWhole(s *suite) {
	var keys []driver.Key
	for _, unit := range []string{"k", "é", "🔑", "\x00", "\xff"} {
		most := strings.Repeat(unit, driver.MaxKeyPart/len(unit))
		for _, end := range []string{"x", "y"} {
			long := most[:driver.MaxKeyPart-1] + end
			keys = append(keys,
				driver.Key{Scope: long, ID: long},
				driver.Key{Scope: "scope", ID: long},
				driver.Key{Scope: long, ID: "id"})
		}
	}
	s.distinct(keys)
}
