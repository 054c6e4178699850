package conformance

import (
	"bytes"
	"strings"

	"github.com/idem-go/idem/driver"
)

func onID(f func(string) string) func(driver.Key) driver.Key {
	return func(k driver.Key) driver.Key {
		if k.ID == "" { // what a completion without a key has
			return k
		}
		k.ID = f(k.ID)
		if k.ID == "" {
			k.ID = "empty"
		}
		return k
	}
}

func cutOutcome(f func([]byte) []byte) func(*mutant, driver.CompleteParams, completeNext) (driver.CompleteResult, error) {
	return func(_ *mutant, p driver.CompleteParams, next completeNext) (driver.CompleteResult, error) {
		if len(p.Outcome) > 0 {
			if p.Outcome = f(p.Outcome); len(p.Outcome) == 0 {
				p.Outcome = []byte("empty")
			}
		}
		return next(p)
	}
}

var byteFaults = []fault{
	{name: "folds the case of keys", key: onID(strings.ToLower)},
	{name: "trims blanks off keys", key: onID(func(id string) string { return strings.TrimRight(id, " ") })},
	{name: "cuts keys at NUL", key: onID(func(id string) string { before, _, _ := strings.Cut(id, "\x00"); return before })},
	{name: "mends keys that are no UTF-8", key: onID(func(id string) string { return strings.ToValidUTF8(id, "\ufffd") })},
	{name: "cuts long keys", key: onID(func(id string) string { return id[:min(len(id), driver.MaxKeyPart-1)] })},
	{name: "joins scope and ID", key: func(k driver.Key) driver.Key {
		if k.ID == "" || k.Scope == "" || len(k.Scope+k.ID) >= driver.MaxKeyPart {
			return k
		}
		return driver.Key{Scope: "all", ID: k.Scope + ":" + k.ID}
	}},
	{name: "forgets what stands before a slash", key: func(k driver.Key) driver.Key {
		last := func(s string) string { return s[strings.LastIndex(s, "/")+1:] }
		return driver.Key{Scope: last(k.Scope), ID: last(k.ID)}
	}},
	{name: "cuts outcomes at NUL", complete: cutOutcome(func(b []byte) []byte { before, _, _ := bytes.Cut(b, []byte{0}); return before })},
	{name: "cuts outcomes at 64 KiB", complete: cutOutcome(func(b []byte) []byte { return b[:min(len(b), 1<<16)] })},
	{name: "cuts outcomes at its limit", complete: cutOutcome(func(b []byte) []byte { return b[:min(len(b), maxOutcome)] })},
	{name: "counts its limit wrong by one", complete: func(_ *mutant, p driver.CompleteParams, next completeNext) (driver.CompleteResult, error) {
		if len(p.Outcome) == maxOutcome {
			return driver.CompleteResult{}, driver.ErrTooLarge
		}
		return next(p)
	}},
	{name: "folds the case of fingerprints", claim: func(_ *mutant, p driver.ClaimParams, next claimNext) (driver.ClaimResult, error) {
		p.Fingerprint = bytes.ToLower(p.Fingerprint)
		return next(p)
	}},
}
