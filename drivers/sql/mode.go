package idemsql

import "strconv"

// ClaimMode says whether a key is looked up before it is claimed.
type ClaimMode uint8

// The claim modes.
const (
	// Auto chooses by what the store has seen: it reads first for keys that it
	// has met lately, and for all while duplicates are frequent. A lease on
	// SQLite always reads first.
	Auto ClaimMode = 0
	// ClaimFirst saves a statement for a new key.
	ClaimFirst ClaimMode = 1
	// ReadFirst answers a duplicate with one read, without a transaction and
	// without a lock.
	ReadFirst ClaimMode = 2
)

// String returns the mode's name.
func (m ClaimMode) String() string {
	switch m {
	case Auto:
		return "Auto"
	case ClaimFirst:
		return "ClaimFirst"
	case ReadFirst:
		return "ReadFirst"
	}
	return "ClaimMode(" + strconv.Itoa(int(m)) + ")"
}
