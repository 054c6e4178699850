package idemredis

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/idem-go/idem/driver"
)

// Inspect implements [driver.Inspector].
func (s *Store) Inspect(ctx context.Context, p driver.InspectParams) (driver.InspectResult, error) {
	a, err := lookScript.run(ctx, s.client, s.physical(p.Key), nil)
	if err != nil {
		return driver.InspectResult{}, failed("inspect", err)
	}
	rec, found := show(p.Key, a)
	return driver.InspectResult{Found: found, Record: rec}, nil
}

// show is a record as look.lua saw it; false if there is nothing to show.
func show(k driver.Key, a answer) (driver.Record, bool) {
	r, ok := decode(a.bytes(2))
	if a.verdict == 0 || !ok {
		return driver.Record{}, false
	}
	now, until := a.int(0), a.int(1)
	rec := driver.Record{
		Key:         k,
		State:       driver.State(a.verdict), //nolint:gosec // one of a few
		Guarantee:   r.guarantee,
		OnLapse:     r.onLapse,
		Fence:       r.fence,
		Generation:  r.generation,
		Attempt:     r.attempt,
		Fingerprint: r.fingerprint,
		Format:      r.format,
		ClaimedAt:   clock(r.claimedAt),
	}
	if rec.State == driver.StateClaimed {
		rec.LeaseLeft = left(now, until)
		return rec, true
	}
	rec.LifeLeft = left(now, until)
	if rec.State != driver.StateReleased {
		rec.CompletedAt = clock(r.end)
	}
	if rec.State == driver.StateCompleted {
		rec.Outcome = r.outcome
	}
	return rec, true
}

// Resolve implements [driver.Resolver].
func (s *Store) Resolve(ctx context.Context, p driver.ResolveParams) (driver.ResolveResult, error) {
	if err := p.Validate(); err != nil {
		return driver.ResolveResult{}, err
	}
	if err := s.checkOutcome(p.Outcome, p.Format); err != nil {
		return driver.ResolveResult{}, err
	}
	a, err := resolveScript.run(ctx, s.client, s.physical(p.Key), []string{
		strconv.FormatInt(p.Fence, 10),
		strconv.Itoa(int(p.Action)),
		rueidis.BinaryString(p.Outcome),
		micros(p.Retention),
		micros(p.Tombstone),
		strconv.Itoa(p.Format),
	})
	if err != nil {
		return driver.ResolveResult{}, failed("resolve", err)
	}
	if a.verdict == verdictOK {
		return driver.ResolveResult{Applied: true}, nil
	}
	res := driver.ResolveResult{State: driver.State(a.int(2)), Fence: a.int(3)} //nolint:gosec // one of a few
	if res.State == driver.StateClaimed {
		res.LeaseLeft = left(a.int(0), a.int(1))
	}
	return res, nil
}
