package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/idem-go/idem/driver"
)

var outcomeCases = []testCase{
	{
		"outcomes/are-exact-bytes",
		"Outcomes come back byte by byte: every byte value, NUL first and last, text that is no UTF-8, digits, null.",
		needs{leasesOrGuards}, outcomesAreExact,
	},
	{
		"outcomes/large-ones-are-whole",
		"Outcomes around 64 KiB and of 1 MiB come back whole.",
		needs{leasesOrGuards}, largeOutcomesAreWhole,
	},
	{
		"outcomes/too-large-is-an-error",
		"An outcome that the backend cannot hold is ErrTooLarge and leaves the claim with its owner; it is never cut off.",
		needs{leasesOrGuards}, tooLargeIsAnError,
	},
	{
		"outcomes/limit-is-exact",
		"An outcome of MaxOutcome bytes is stored, and one byte more is ErrTooLarge.",
		needs{leasesOrGuards, limited}, limitIsExact,
	},
	{
		"outcomes/fingerprints-are-exact-bytes",
		"Fingerprints come back byte by byte, and are compared so.",
		needs{leasesOrGuards}, fingerprintsAreExact,
	},
}

func everyByte() []byte {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return all
}

// stores completes a new key with the outcome and wants it back.
func (s *suite) stores(id string, want []byte) {
	p := s.caller()
	p.Key = key(id)
	s.grant(p)
	c := completion(p)
	c.Outcome = want
	s.complete(c)
	if got := s.expect(driver.DecisionCompleted, again(p)).Outcome; !bytes.Equal(got, want) {
		s.Errorf("%s: %d bytes came back, other than the %d stored", id, len(got), len(want))
	}
}

func outcomesAreExact(s *suite) {
	for _, text := range []string{
		"\x00", "\x00a", "a\x00", "a\x00b", "\xff\xfe", "0", "null", "{}", "''", `""`, " ", "\n", "1e3",
		string(everyByte()),
	} {
		s.stores(fmt.Sprintf("%.20q", text), []byte(text))
	}
}

func largeOutcomesAreWhole(s *suite) {
	for _, n := range []int{1<<16 - 1, 1 << 16, 1<<16 + 1, 1 << 20} {
		if s.caps.MaxOutcome == 0 || n <= s.caps.MaxOutcome {
			s.stores(fmt.Sprint(n, " bytes"), sized(n))
		}
	}
}

// tooLarge is more than any backend takes that has a limit below 16 MiB.
const tooLarge = 17 << 20

// sized are n bytes that do not compress to nothing.
func sized(n int) []byte {
	b := noise()
	if n > len(b) {
		b = bytes.Repeat(b, n/len(b)+1)
	}
	return b[:n]
}

var noise = sync.OnceValue(func() []byte {
	b := make([]byte, tooLarge)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // never fails
	return b
})

func tooLargeIsAnError(s *suite) {
	p := s.caller()
	s.grant(p)
	c := completion(p)
	c.Outcome = sized(tooLarge)
	if _, err := s.d.Complete(s.ctx, c); err != nil {
		if !errors.Is(err, driver.ErrTooLarge) {
			s.Errorf("17 MiB returned %v, want ErrTooLarge", err)
		}
		s.expect(driver.DecisionInFlight, again(p))
		c.Outcome = outcome
		s.complete(c)
	}
	if got := s.expect(driver.DecisionCompleted, again(p)).Outcome; !bytes.Equal(got, c.Outcome) {
		s.Errorf("%d bytes came back, other than the %d stored", len(got), len(c.Outcome))
	}
}

func limitIsExact(s *suite) {
	n := s.caps.MaxOutcome
	s.stores("at the limit", sized(n))
	p := s.caller()
	s.grant(p)
	s.unchanged(p, func() {
		c := completion(p)
		c.Outcome = sized(n + 1)
		if _, err := s.d.Complete(s.ctx, c); !errors.Is(err, driver.ErrTooLarge) {
			s.Errorf("%d bytes returned %v, want ErrTooLarge", n+1, err)
		}
	})
	s.complete(completion(p))
}

func fingerprintsAreExact(s *suite) {
	for i, f := range [][]byte{everyByte()[:64], everyByte()[192:], []byte("v1: \x00"), []byte("v1: \x00\x00"), []byte("v1: A"), []byte("v1: a ")} {
		p := s.caller()
		p.Key = key(fmt.Sprint("fingerprint", i))
		p.Fingerprint = f
		s.grant(p)
		if got := s.expect(driver.DecisionInFlight, again(p)).Fingerprint; !bytes.Equal(got, f) {
			s.Errorf("in flight the fingerprint is %q, want %q", got, f)
		}
		s.complete(completion(p))
		if got := s.expect(driver.DecisionCompleted, again(p)).Fingerprint; !bytes.Equal(got, f) {
			s.Errorf("after the completion the fingerprint is %q, want %q", got, f)
		}
	}
}
