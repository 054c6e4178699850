package idemsql

import (
	"context"
	"database/sql"
	"strconv"
	"strings"

	"github.com/idem-go/idem/driver"
)

// server is what a store has to know of the server that its pool is open on.
type server struct {
	mariaDB bool
	modern  bool // knows SKIP LOCKED and JSON_TABLE
	packet  int  // the most bytes that a statement and its arguments may have
}

// overhead is what a statement that stores an outcome has beside it, at most.
const overhead = 16 << 10

// learn asks the server what kind it is, once, where the dialect wants to know.
func (s *Store) learn(ctx context.Context, on interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
},
) error {
	if s.dialect.facts == "" || s.server.Load() != nil {
		return nil
	}
	var version string
	var f server
	err := s.reading(ctx, func() error {
		return on.QueryRowContext(ctx, s.dialect.facts).Scan(&version, &f.packet)
	})
	if err != nil {
		return err
	}
	f.mariaDB = strings.Contains(version, "MariaDB")
	f.modern = modern(version, f.mariaDB)
	s.server.Store(&f)
	return nil
}

// modern reports whether a server of the version knows SKIP LOCKED and
// JSON_TABLE. TiDB reads past the one, and waits, and does not know the other.
func modern(version string, mariaDB bool) bool {
	if strings.Contains(version, "TiDB") {
		return false
	}
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	if errA != nil || errB != nil {
		return false
	}
	if mariaDB {
		return a > 10 || a == 10 && b >= 6
	}
	return a >= 8
}

// isMariaDB reports whether the server may be spoken to as MariaDB: the user
// has not said that it is MySQL.
func (s *Store) isMariaDB() bool {
	if s.config.dialect != MySQL {
		return s.config.dialect == MariaDB
	}
	f := s.server.Load()
	return !s.config.said && f != nil && f.mariaDB
}

// A claim that tells what is in its way saves a duplicate a round trip. On
// PostgreSQL it is more work for the server, so it has to pay for itself.
const (
	tellShare = 10 // the share of duplicates, in percent, from which it does
	toldShare = 80 // and from which a lease reads first: less work, but a round trip more for a new key
)

// tells reports whether a lease of a new key is claimed by stClaimTells.
func (s *Store) tells() bool {
	if s.dialect.stamps {
		return s.isMariaDB()
	}
	return s.dialect.templates[stClaimTells] != "" && (s.config.mode == ClaimFirst || s.guess.Frequent(tellShare))
}

// saw remembers a key, and how its claim ended.
func (s *Store) saw(k driver.Key, d driver.Decision) {
	s.guess.Note(k)
	s.guess.Count(d)
}

// leaseDuplicates is the share of duplicates, in percent, from which reading
// first is cheaper for a lease.
func (s *Store) leaseDuplicates() int64 {
	if s.dialect.templates[stClaimTells] == "" || s.dialect.stamps && !s.isMariaDB() {
		return s.dialect.duplicates
	}
	return toldShare
}

// maxOutcome is how many bytes an outcome may have.
func (s *Store) maxOutcome() int {
	f := s.server.Load()
	if f == nil {
		return s.dialect.maxOutcome
	}
	most := f.packet - overhead
	if s.config.unprepared {
		most = f.packet/2 - overhead // each byte may have to be escaped
	}
	return min(s.dialect.maxOutcome, max(most, 0))
}
