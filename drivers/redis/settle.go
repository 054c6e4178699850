package idemredis

import (
	"context"
	"math"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/idem-go/idem/driver"
)

// Complete implements [driver.Driver].
func (s *Store) Complete(ctx context.Context, p driver.CompleteParams) (driver.CompleteResult, error) {
	if err := s.checkCompletion(&p); err != nil {
		return driver.CompleteResult{}, err
	}
	a, err := completeScript.run(ctx, s.client, s.physical(p.Key), completeArgs(&p))
	res, err := completed(a, err, &p)
	if err == nil && p.To == driver.StateCompleted {
		s.guess.Note(p.Key)
		s.clock.saw(res.CompletedAt)
	}
	return res, err
}

func (s *Store) checkCompletion(p *driver.CompleteParams) error {
	if err := p.Validate(); err != nil {
		return err
	}
	return s.checkOutcome(p.Outcome, p.Format)
}

func (s *Store) checkOutcome(outcome []byte, format int) error {
	switch {
	case format > math.MaxInt32:
		return invalid("format is %d", format)
	case len(outcome) > s.maxOutcome:
		return failed("complete", driver.ErrTooLarge)
	}
	return nil
}

func completeArgs(p *driver.CompleteParams) []string {
	return []string{
		rueidis.BinaryString(p.Token[:]),
		strconv.Itoa(int(p.To)),
		rueidis.BinaryString(p.Outcome),
		micros(p.Retention),
		micros(p.Tombstone),
		strconv.Itoa(p.Format),
	}
}

func completed(a answer, err error, p *driver.CompleteParams) (driver.CompleteResult, error) {
	if err != nil {
		return driver.CompleteResult{}, failed("complete", err)
	}
	if a.alone {
		return driver.CompleteResult{CompletedAt: clock(a.number), LifeLeft: driver.RoundUp(p.Retention, precision)}, nil
	}
	return driver.CompleteResult{
		CompletedAt: clock(a.int(2)),
		LifeLeft:    left(a.int(0), a.int(1)),
		Already:     a.verdict == verdictAlready,
	}, nil
}

// Release implements [driver.Driver].
func (s *Store) Release(ctx context.Context, p driver.ReleaseParams) (driver.ReleaseResult, error) {
	if err := p.Validate(); err != nil {
		return driver.ReleaseResult{}, err
	}
	args := []string{rueidis.BinaryString(p.Token[:]), micros(p.Keep)}
	if _, err := releaseScript.run(ctx, s.client, s.physical(p.Key), args); err != nil {
		return driver.ReleaseResult{}, failed("release", err)
	}
	return driver.ReleaseResult{}, nil
}

// Renew implements [driver.Driver].
func (s *Store) Renew(ctx context.Context, p driver.RenewParams) (driver.RenewResult, error) {
	if err := p.Validate(); err != nil {
		return driver.RenewResult{}, err
	}
	return renewed(renewScript.run(ctx, s.client, s.physical(p.Key), renewArgs(&p)))
}

func renewArgs(p *driver.RenewParams) []string {
	return []string{rueidis.BinaryString(p.Token[:]), micros(p.Lease)}
}

func renewed(a answer, err error) (driver.RenewResult, error) {
	if err != nil {
		return driver.RenewResult{}, failed("renew", err)
	}
	return driver.RenewResult{LeaseLeft: left(a.int(0), a.int(1))}, nil
}
