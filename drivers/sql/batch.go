package idemsql

import (
	"context"
	"encoding/hex"
	"encoding/json"

	"github.com/idem-go/idem/driver"
)

// renewal is one renewal of a batch as a statement gets it: bytes in hex, the lease in µs.
type renewal struct {
	Scope string `json:"scope"`
	ID    string `json:"id"`
	Token string `json:"token"`
	Lease int64  `json:"lease"`
}

// holder is whose lease a renewal prolongs.
type holder struct {
	key   driver.Key
	token driver.Token
}

// RenewBatch implements [driver.BatchRenewer] with one statement, and one more
// for each lease that was not found; on MySQL and MariaDB with one for each lease.
func (s *Store) RenewBatch(ctx context.Context, p driver.RenewBatchParams) (driver.RenewBatchResult, error) {
	if err := s.alone(ctx); err != nil {
		return driver.RenewBatchResult{}, err
	}
	answers := make([]driver.RenewAnswer, len(p.Renewals))
	if s.dialect.templates[stRenewBatch] == "" {
		for i, r := range p.Renewals {
			answers[i].Result, answers[i].Err = s.Renew(ctx, r)
		}
		return driver.RenewBatchResult{Renewals: answers}, nil
	}
	leases := make(map[holder]int64, len(p.Renewals)) // the longest, of a lease that occurs twice
	for i, r := range p.Renewals {
		if answers[i].Err = r.Validate(); answers[i].Err == nil {
			h := holder{r.Key, r.Token}
			leases[h] = max(leases[h], s.dialect.us(r.Lease))
		}
	}
	left, err := s.renewAll(ctx, leases)
	if err != nil {
		return driver.RenewBatchResult{}, s.failed("renew", err)
	}
	for i, r := range p.Renewals {
		if answers[i].Err != nil {
			continue
		}
		if us, renewed := left[holder{r.Key, r.Token}]; renewed {
			answers[i].Result.LeaseLeft = duration(us)
			continue
		}
		err := s.reading(ctx, func() error {
			return session{Store: s, on: s.renewals}.notRenewed(ctx, ownerArgs(r.Key, r.Token), r.Token)
		})
		answers[i].Err = s.failed("renew", err)
	}
	return driver.RenewBatchResult{Renewals: answers}, nil
}

// renewAll renews leases and returns what is left of those that it found.
func (s *Store) renewAll(ctx context.Context, leases map[holder]int64) (map[holder]int64, error) {
	left := make(map[holder]int64, len(leases))
	if len(leases) == 0 {
		return left, nil
	}
	batch := make([]renewal, 0, len(leases))
	for h, lease := range leases {
		batch = append(batch, renewal{
			Scope: hex.EncodeToString([]byte(h.key.Scope)),
			ID:    hex.EncodeToString([]byte(h.key.ID)),
			Token: hex.EncodeToString(h.token[:]),
			Lease: lease,
		})
	}
	text, err := json.Marshal(batch)
	if err != nil {
		return nil, err
	}
	err = s.writing(ctx, func() error {
		clear(left)
		return session{Store: s, on: s.renewals}.each(ctx, stRenewBatch, &args{pBatch: string(text)}, func(scan func(...any) error) error {
			var h holder
			var token []byte
			var us int64
			if err := scan(&h.key.Scope, &h.key.ID, &token, &us); err != nil {
				return err
			}
			copy(h.token[:], token)
			left[h] = us
			return nil
		})
	})
	return left, err
}
