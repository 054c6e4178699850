package idem

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/idem-go/idem/driver"
)

// maxPlain is the length up to which scopes and IDs are stored as they are. A
// longer one is stored as a prefix and its hash, which together are always
// driver.MaxKeyPart bytes: one more than any plain one, so that no plain one
// can be taken for a hash. The derivation is version 1 and frozen.
const maxPlain = driver.MaxKeyPart - 1

// shorten returns the stored form of a scope or ID.
func shorten(s string) string {
	if len(s) <= maxPlain {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	hash := hex.EncodeToString(sum[:])
	cut := driver.MaxKeyPart - len(hash) - 1
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + strings.Repeat("~", driver.MaxKeyPart-len(hash)-cut) + hash
}

// joinScope returns the stored scope of a key space and the scopes nested in
// it. A lone key space is stored as it is, unless it could be taken for a join.
func joinScope(space string, nested ...string) string {
	if len(nested) == 0 && (space[0] < '0' || space[0] > '9') {
		return shorten(space)
	}
	joined := appendPart("", space)
	for _, s := range nested {
		joined = appendPart(joined, s)
	}
	return shorten(joined)
}

// appendPart appends a part behind its length, so that parts cannot run together.
func appendPart(dst, part string) string {
	return dst + strconv.Itoa(len(part)) + ":" + part + ","
}

// blank reports whether s has nothing but white space.
func blank(s string) bool { return strings.TrimSpace(s) == "" }
