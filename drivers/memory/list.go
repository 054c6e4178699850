package idemmemory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/idem-go/idem/driver"
)

// List implements [driver.Lister], in the order of the keys. A page costs a
// walk over all records.
func (s *Store) List(ctx context.Context, p driver.ListParams) (driver.ListResult, error) {
	if p.Limit < 1 {
		return driver.ListResult{}, fmt.Errorf("%w: a page of %d records", driver.ErrInvalid, p.Limit)
	}
	var from driver.Key
	if p.After != "" {
		var ok bool
		if from, ok = parseKey(p.After); !ok {
			return driver.ListResult{}, fmt.Errorf("%w: After is no cursor of this store", driver.ErrInvalid)
		}
	}
	if err := ctx.Err(); err != nil {
		return driver.ListResult{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var page []*record // the first Limit and one more, in order
	for _, r := range s.records {
		if p.Scope != "" && r.key.Scope != p.Scope || compareKeys(r.key, from) <= 0 {
			continue
		}
		state, _ := r.visible(now)
		if state == 0 || p.State != 0 && p.State != state {
			continue
		}
		page = insert(page, r, p.Limit+1)
	}
	return result(page, now, p.Limit), nil
}

// insert keeps page sorted and at most n long.
func insert(page []*record, r *record, n int) []*record {
	i, _ := slices.BinarySearchFunc(page, r, func(a, b *record) int { return compareKeys(a.key, b.key) })
	if i == n {
		return page
	}
	if len(page) == n {
		page = page[:n-1]
	}
	return slices.Insert(page, i, r)
}

func result(page []*record, now time.Time, limit int) driver.ListResult {
	var res driver.ListResult
	if len(page) > limit {
		page = page[:limit]
		res.Next = page[limit-1].key.String()
	}
	for _, r := range page {
		rec, _ := r.show(now)
		res.Records = append(res.Records, rec)
	}
	return res
}

func compareKeys(a, b driver.Key) int {
	return cmp.Or(strings.Compare(a.Scope, b.Scope), strings.Compare(a.ID, b.ID))
}

// parseKey undoes [driver.Key.String].
func parseKey(s string) (driver.Key, bool) {
	length, rest, ok := strings.Cut(s, ":")
	n, err := strconv.Atoi(length)
	if !ok || err != nil || n < 0 || n >= len(rest) || rest[n] != ':' {
		return driver.Key{}, false
	}
	return driver.Key{Scope: rest[:n], ID: rest[n+1:]}, true
}
