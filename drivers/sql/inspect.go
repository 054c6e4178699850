package idemsql

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/idem-go/idem/driver"
)

// Inspect implements [driver.Inspector] with one read, which takes no lock. In
// a context that carries a transaction of this store's pool it reads there.
func (s *Store) Inspect(ctx context.Context, p driver.InspectParams) (driver.InspectResult, error) {
	in, err := s.session(ctx)
	if err != nil {
		return driver.InspectResult{}, err
	}
	var r *record
	err = s.reading(ctx, func() (err error) {
		r, err = in.read(ctx, keyArgs(p.Key))
		return err
	})
	if err == nil && r != nil {
		err = r.check()
	}
	if err != nil {
		return driver.InspectResult{}, s.failed("inspect", err)
	}
	if r == nil {
		return driver.InspectResult{}, nil
	}
	rec, found := r.show(p.Key)
	return driver.InspectResult{Found: found, Record: rec}, nil
}

// session is where a read of ctx runs.
func (s *Store) session(ctx context.Context) (session, error) {
	t, err := s.transaction(ctx)
	if err != nil || t == nil {
		return session{Store: s}, err
	}
	return session{Store: s, tx: t.tx}, nil
}

// show tells of the record as its clock sees it; found is false if it is past
// everything that it was kept for.
func (r *record) show(k driver.Key) (rec driver.Record, found bool) {
	state, until := r.visible()
	if state == 0 {
		return driver.Record{}, false
	}
	rec = driver.Record{
		Key:         k,
		State:       state,
		Guarantee:   r.guarantee,
		OnLapse:     r.onLapse,
		Fence:       r.fence,
		Generation:  r.generation,
		Attempt:     r.attempt,
		Fingerprint: r.fingerprint,
		Format:      int(r.format),
		ClaimedAt:   clock(r.claimedAt),
	}
	switch state {
	case driver.StateClaimed:
		rec.LeaseLeft = r.left(r.leaseEnd.Int64)
		return rec, true
	case driver.StateCompleted:
		rec.Outcome = r.outcome
	default:
	}
	rec.LifeLeft = r.left(until)
	if state != driver.StateReleased {
		rec.CompletedAt = clock(r.base())
	}
	return rec, true
}

// List implements [driver.Lister], in the order of the keys. A page may have
// fewer records than Limit, or none, and still not be the last: those of
// another state, and those past everything they were kept for, are left out of
// it. A corrupt record has no state, and shows only its key, fence and format.
func (s *Store) List(ctx context.Context, p driver.ListParams) (driver.ListResult, error) {
	if p.Limit <= 0 {
		return driver.ListResult{}, fmt.Errorf("%w: listing at most %d records", driver.ErrInvalid, p.Limit)
	}
	after, err := parseCursor(p.After)
	if err != nil {
		return driver.ListResult{}, err
	}
	in, err := s.session(ctx)
	if err != nil {
		return driver.ListResult{}, err
	}
	id, a := stList, &args{pScope: []byte(after.Scope), pID: []byte(after.ID), pLimit: int64(p.Limit)}
	if p.Scope != "" {
		id, a[pScope] = stListScope, []byte(p.Scope)
	}
	var res driver.ListResult
	err = s.reading(ctx, func() error {
		res = driver.ListResult{}
		var last driver.Key
		n := 0
		err := in.each(ctx, id, a, func(scan func(...any) error) error {
			r := &record{unit: s.dialect.unit}
			if err := scan(append([]any{&last.Scope, &last.ID}, r.dest()...)...); err != nil {
				return err
			}
			n++
			rec, found := r.show(last)
			if r.check() != nil {
				rec, found = driver.Record{Key: last, Fence: r.fence, Format: int(r.format)}, true
			}
			if found && (p.State == 0 || p.State == rec.State) {
				res.Records = append(res.Records, rec)
			}
			return nil
		})
		if n == p.Limit {
			res.Next = last.String()
		}
		return err
	})
	if err != nil {
		return driver.ListResult{}, s.failed("list", err)
	}
	return res, nil
}

// parseCursor is the reverse of [driver.Key.String], which a cursor is.
func parseCursor(s string) (driver.Key, error) {
	if s == "" {
		return driver.Key{}, nil
	}
	length, rest, _ := strings.Cut(s, ":")
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n >= len(rest) || rest[n] != ':' {
		return driver.Key{}, fmt.Errorf("%w: no page ends at %q", driver.ErrInvalid, s)
	}
	return driver.Key{Scope: rest[:n], ID: rest[n+1:]}, nil
}
