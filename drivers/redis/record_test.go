package idemredis_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/idem-go/idem/driver"
)

// write puts something under a key's name.
func (b *bundle) write(k driver.Key, value []byte) {
	b.t.Helper()
	do(b.t, b.client, "SET", b.physical(k), rueidis.BinaryString(value))
}

// read is what is under a key's name; nil if there is nothing.
func (b *bundle) read(k driver.Key) []byte {
	b.t.Helper()
	value, err := b.client.Do(b.t.Context(), b.client.B().Get().Key(b.physical(k)).Build()).AsBytes()
	if rueidis.IsRedisNil(err) {
		return nil
	}
	must(b.t, err)
	return value
}

// each calls every method that reads the key's record before it does something.
func (b *bundle) each(p driver.ClaimParams, f func(call string, err error)) {
	res, err := b.Claim(b.t.Context(), p)
	if err == nil && res.Decision == 0 {
		b.t.Errorf("the claim has no decision: %+v", res)
	}
	f("Claim", err)
	_, err = b.Complete(b.t.Context(), completionOf(p, "x"))
	f("Complete", err)
	_, err = b.Renew(b.t.Context(), driver.RenewParams{Key: p.Key, Token: p.Token, Lease: time.Minute})
	f("Renew", err)
	_, err = b.Release(b.t.Context(), driver.ReleaseParams{Key: p.Key, Token: p.Token})
	f("Release", err)
	_, err = b.Resolve(b.t.Context(), driver.ResolveParams{Key: p.Key, Fence: 1, Action: driver.ResolveForget, Format: 1})
	f("Resolve", err)
	_, err = b.Inspect(b.t.Context(), driver.InspectParams{Key: p.Key})
	f("Inspect", err)
}

// refuses wants every call to fail with an error, and what is stored to stay.
func (b *bundle) refuses(what string, p driver.ClaimParams, want error) {
	b.t.Helper()
	before := b.read(p.Key)
	b.each(p, func(call string, err error) {
		if !errors.Is(err, want) {
			b.t.Errorf("%s: %s returned %v, want %v", what, call, err, want)
		}
	})
	if after := b.read(p.Key); !bytes.Equal(before, after) {
		b.t.Errorf("%s was changed from %q to %q", what, before, after)
	}
}

func TestACorruptRecordIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p := guardOf("key")
	p.Fingerprint = []byte("v1: mine")
	s.mustClaim(p, driver.DecisionClaimed)
	sound := s.read(p.Key)
	for what, spoil := range map[string]func(b []byte) []byte{
		"an empty string":         func([]byte) []byte { return []byte{} },
		"another's value":         func([]byte) []byte { return []byte(`{"status":"done"}`) },
		"a cut head":              func(b []byte) []byte { return b[:83] },
		"a cut fingerprint":       func(b []byte) []byte { return b[:len(b)-1] },
		"a claim with more to it": func(b []byte) []byte { return append(b, 'x') },
		"version 0":               func(b []byte) []byte { b[4] = 0; return b },
		"no state":                func(b []byte) []byte { b[5] = 0; return b },
		"a state that is none":    func(b []byte) []byte { b[5] = 4; return b },
		"a state to come":         func(b []byte) []byte { b[5] = 6; return b },
		"no meaning of its lapse": func(b []byte) []byte { b[6] = 0; return b },
		"no guarantee":            func(b []byte) []byte { b[7] = 0; return b },
		"attempt 0":               func(b []byte) []byte { clear(b[12:16]); return b },
		"format 0":                func(b []byte) []byte { clear(b[16:20]); return b },
		"fence 0":                 func(b []byte) []byte { clear(b[36:44]); return b },
		"a negative fence":        func(b []byte) []byte { b[36] = 0xff; return b },
		"generation 0":            func(b []byte) []byte { clear(b[44:52]); return b },
		"no time of its claim":    func(b []byte) []byte { clear(b[52:60]); return b },
		"a claim without an end":  func(b []byte) []byte { clear(b[60:68]); return b },
		"a negative retention":    func(b []byte) []byte { b[75] = 0xfe; return b },
		"a negative tombstone":    func(b []byte) []byte { b[76] = 0xfe; return b },
		"no outcome":              func(b []byte) []byte { b[5] = 2; return b },
	} {
		s.write(p.Key, spoil(bytes.Clone(sound)))
		s.refuses(what, p, driver.ErrCorrupt)
	}
	s.write(p.Key, sound)
	s.mustHold(p)
}

func TestANewerRecordIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p := claimOf("key")
	s.mustClaim(p, driver.DecisionClaimed)
	newer := s.read(p.Key)
	newer[4] = 2
	s.write(p.Key, newer)
	s.refuses("a newer record", p, driver.ErrNewerFormat)
	s.write(p.Key, append(newer[:5], "quite another layout"...))
	s.refuses("a newer record of another layout", p, driver.ErrNewerFormat)
}

// A key of another type under the same name (R6).
func TestAKeyOfAnotherTypeIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p := claimOf("key")
	name := s.physical(p.Key)
	for _, command := range [][]string{
		{"HSET", name, "field", "value"},
		{"RPUSH", name, "element"},
		{"SADD", name, "member"},
		{"ZADD", name, "1", "member"},
		{"XADD", name, "*", "field", "value"},
	} {
		do(t, s.client, "DEL", name)
		do(t, s.client, command...)
		kind, err := do(t, s.client, "TYPE", name).ToString()
		must(t, err)
		s.each(p, func(call string, err error) {
			if !errors.Is(err, driver.ErrCorrupt) {
				t.Errorf("a %s: %s returned %v, want ErrCorrupt", kind, call, err)
			}
		})
		if now, _ := do(t, s.client, "TYPE", name).ToString(); now != kind {
			t.Errorf("the %s has become a %s", kind, now)
		}
	}
}

// Whatever is stored, every call answers, and nothing panics here or fails in a script.
func TestRandomDamageIsAlwaysAnswered(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p := claimOf("key")
	p.Fingerprint = []byte("v1: mine")
	s.mustClaim(p, driver.DecisionClaimed)
	claimed := s.read(p.Key)
	s.mustComplete(p, "outcome")
	completed := s.read(p.Key)
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		damaged := bytes.Clone(claimed)
		if r.IntN(2) == 0 {
			damaged = bytes.Clone(completed)
		}
		for range 1 + r.IntN(3) {
			damaged[r.IntN(len(damaged))] ^= byte(1 << r.IntN(8))
		}
		damaged = damaged[:len(damaged)-r.IntN(2)*r.IntN(len(damaged))]
		s.write(p.Key, damaged)
		s.each(p, func(call string, err error) {
			if err != nil && !errors.Is(err, driver.ErrCorrupt) && !errors.Is(err, driver.ErrNewerFormat) && !errors.Is(err, driver.ErrLost) {
				t.Errorf("%q: %s returned %v", damaged, call, err)
			}
		})
	}
}

func TestARecordHasALayout(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p := guardOf("key")
	p.Token = driver.Token([]byte("0123456789abcdef"))
	p.Fingerprint, p.Tombstone, p.Format = []byte("v1: mine"), time.Second, 7
	won := s.mustClaim(p, driver.DecisionClaimed)
	got := s.read(p.Key)
	for i, from := range []int{36, 44, 52} { // fence, generation and the time of the claim are one number
		if !bytes.Equal(got[from:from+8], got[36:44]) {
			t.Errorf("number %d is %x, want that of the fence", i, got[from:from+8])
		}
	}
	clear(got[36:68])
	want := "idem\x01\x01\x02\x02\x00\x00\x00\x08\x00\x00\x00\x01\x00\x00\x00\x07" + "0123456789abcdef" + string(make([]byte, 32)) +
		"\xff\xff\xff\xff\xff\xff\xff\xff" + "\x00\x00\x00\x00\x00\x0f\x42\x40" + "v1: mine"
	if string(got) != want {
		t.Errorf("the record is\n%q, want\n%q", got, want)
	}
	if won.ClaimedAt.UnixMicro() != won.Fence {
		t.Errorf("the fence %d is not the time %d", won.Fence, won.ClaimedAt.UnixMicro())
	}
}
