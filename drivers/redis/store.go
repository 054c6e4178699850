package idemredis

import (
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/idem-go/idem/driver"
	"github.com/idem-go/idem/internal/duplicates"
)

// precision is that of the server's clock.
const precision = time.Microsecond

// Store keeps idempotency records in Redis. It is safe for concurrent use;
// stores with the same prefix on the same server see the same records. It runs
// no goroutine but while somebody watches a record, and holds nothing that
// would have to be closed.
type Store struct {
	config

	client  rueidis.Client
	watches watches
	guess   *duplicates.Guess // whether to look before a claim
	clock   serverClock
}

var (
	_ driver.Driver         = (*Store)(nil)
	_ driver.Inspector      = (*Store)(nil)
	_ driver.Lister         = (*Store)(nil)
	_ driver.Resolver       = (*Store)(nil)
	_ driver.Verifier       = (*Store)(nil)
	_ driver.Watcher        = (*Store)(nil)
	_ driver.Classifier     = (*Store)(nil)
	_ driver.Overlapper     = (*Store)(nil)
	_ driver.BatchClaimer   = (*Store)(nil)
	_ driver.BatchCompleter = (*Store)(nil)
	_ driver.BatchRenewer   = (*Store)(nil)
)

// New returns a store on a client that its user opened and closes. Nothing is
// sent yet; see [Store.Verify].
func New(client rueidis.Client, opts ...Option) (*Store, error) {
	if client == nil {
		return nil, errors.New("idemredis: the client is nil: open one with rueidis.NewClient")
	}
	c, err := configure(opts)
	if err != nil {
		return nil, err
	}
	return &Store{config: c, client: client, guess: duplicates.New()}, nil
}

// Capabilities implements [driver.Driver].
func (s *Store) Capabilities() driver.Capabilities {
	return driver.Capabilities{
		Contract:        driver.ContractVersion,
		Name:            "redis",
		Guarantees:      driver.GuaranteeSet(driver.AtLeastOnce, driver.AtMostOnce),
		Shared:          true,
		InFlightVisible: true,
		MaxOutcome:      s.maxOutcome,
		ClockPrecision:  precision,
		Features:        driver.FeatureTombstone | driver.FeatureReconcile,
	}
}

// physical is the name of the key's record in the server.
func (s *Store) physical(k driver.Key) string { return s.prefix + k.String() }

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{driver.ErrInvalid}, args...)...)
}
