package idemredis

import (
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/idem-go/idem/driver"
)

// Overlaps implements [driver.Overlapper]. Stores share a server if they have
// the same client, or clients that know the same node; numbered databases of
// one server cannot be told apart. On one server, records of one
// prefix are the same if their scopes are; where one prefix goes on where the
// other ends, they overlap if what it goes on with can be the beginning of a
// record's name, whatever the scopes.
func (s *Store) Overlaps(p driver.OverlapParams) driver.OverlapResult {
	o, ok := p.Other.(*Store)
	if !ok || !sameServer(s.client, o.client) {
		return driver.OverlapResult{}
	}
	if s.prefix == o.prefix {
		return driver.OverlapResult{Overlap: p.Scope == p.OtherScope}
	}
	short, long := s.prefix, o.prefix
	if len(short) > len(long) {
		short, long = long, short
	}
	rest, extends := strings.CutPrefix(long, short)
	return driver.OverlapResult{Overlap: extends && beginsName(rest)}
}

func sameServer(a, b rueidis.Client) bool {
	if a == b {
		return true
	}
	nodes := b.Nodes()
	for addr := range a.Nodes() {
		if _, ok := nodes[addr]; ok {
			return true
		}
	}
	return false
}

// beginsName reports whether [driver.Key.String] can begin with s: a length
// from 1 to [driver.MaxKeyPart] and a colon, or the beginning of that.
func beginsName(s string) bool {
	digits, _, colon := strings.Cut(s, ":")
	n, err := strconv.Atoi(digits)
	return err == nil && digits[0] >= '1' && digits[0] <= '9' && n <= driver.MaxKeyPart &&
		(colon || n*10 < driver.MaxKeyPart)
}
