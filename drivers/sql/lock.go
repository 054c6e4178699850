package idemsql

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/idem-go/idem/driver"
)

// lockNumber is the number of a key's lock in the database. Two keys that
// shared one would only be in each other's way.
func lockNumber(table string, k driver.Key) any {
	sum := lockSum(table, k)
	return int64(binary.BigEndian.Uint64(sum[:8])) //nolint:gosec // any bits will do
}

func lockSum(table string, k driver.Key) [sha256.Size]byte {
	return sha256.Sum256([]byte("idem\x00" + table + "\x00" + k.String()))
}
