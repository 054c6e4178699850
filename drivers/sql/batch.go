package idemsql

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/idem-go/idem/driver"
)

const (
	// maxBatch is how much goes into one statement at most.
	maxBatch = 100
	// maxBatchOutcome is how large an outcome may be, in bytes, that goes out with others.
	maxBatchOutcome = 16 << 10
)

// batch is what one statement does for many keys, each by itself. The keys are
// sorted, so that two batches never wait for each other in a circle.
type batch []entry

type entry struct {
	place int // of the answer
	key   driver.Key
	args  *args
}

// owns reports whether the record is there and carries the entry's token.
func (e entry) owns(r *record) bool {
	token, _ := e.args[pToken].([]byte)
	return r != nil && bytes.Equal(r.token, token)
}

// collect makes batches of n requests. args returns what the statement needs
// for one; nil: it has been answered already. The rest has to go by itself
// afterwards: a key that occurs again, and all where there is no such statement.
func (s *Store) collect(id statementID, n int, args func(i int) (driver.Key, *args)) (batches []batch, rest []int) {
	var all batch
	seen := make(map[driver.Key]bool, n)
	for i := range n {
		k, a := args(i)
		switch {
		case a == nil:
		case seen[k] || !s.batches(id):
			rest = append(rest, i)
		default:
			seen[k] = true
			all = append(all, entry{place: i, key: k, args: a})
		}
	}
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.key.Scope, b.key.Scope), cmp.Compare(a.key.ID, b.key.ID))
	})
	return slices.Collect(slices.Chunk(all, maxBatch)), rest
}

// batches reports whether the server knows the statement. Those of MySQL's
// family need JSON_TABLE.
func (s *Store) batches(id statementID) bool {
	if s.dialect.stamps {
		f := s.server.Load()
		return f != nil && f.modern
	}
	return s.dialect.templates[id] != ""
}

// text is the batch as statements get it: an array of objects with the names of
// the parameters, bytes in hex, NULL left out.
func (b batch) text() (string, error) {
	list := make([]map[string]any, len(b))
	for i, e := range b {
		object := make(map[string]any, len(e.args))
		for p, v := range e.args {
			if raw, ok := v.([]byte); ok {
				v = hex.EncodeToString(raw)
			}
			if v != nil {
				object[paramNames[p]] = v
			}
		}
		list[i] = object
	}
	text, err := json.Marshal(list)
	return string(text), err
}

// written is what a batch has written: a number for each key, as the statement
// for one would answer it; or, where writes answer no rows, one for all.
type written struct {
	of    map[driver.Key]int64
	stamp int64
	rows  int64
}

func (s session) writeBatch(ctx context.Context, id statementID, b batch) (w written, err error) {
	text, err := b.text()
	if err != nil {
		return w, err
	}
	err = s.writing(ctx, func() error {
		w = written{of: make(map[driver.Key]int64, len(b))}
		if s.dialect.stamps {
			res, err := s.exec(ctx, id, &args{pBatch: text})
			if err != nil {
				return err
			}
			w.stamp, _ = res.LastInsertId()
			w.rows, err = res.RowsAffected()
			return err
		}
		return s.each(ctx, id, &args{pBatch: text}, func(scan func(...any) error) error {
			var k driver.Key
			var n int64
			err := scan(&k.Scope, &k.ID, &n)
			w.of[k] = n
			return err
		})
	})
	return w, err
}

// readBatch reads the records of a batch's keys.
func (s session) readBatch(ctx context.Context, b batch) (map[driver.Key]*record, error) {
	found := make(map[driver.Key]*record, len(b))
	if len(b) == 0 {
		return found, nil
	}
	keys := make(batch, len(b))
	for i, e := range b {
		keys[i] = entry{key: e.key, args: keyArgs(e.key)}
	}
	text, err := keys.text()
	if err != nil {
		return nil, err
	}
	err = s.reading(ctx, func() error {
		return s.each(ctx, stReadBatch, &args{pBatch: text}, func(scan func(...any) error) error {
			var k driver.Key
			r := &record{unit: s.dialect.unit}
			err := scan(append([]any{&k.Scope, &k.ID}, r.dest()...)...)
			found[k] = r
			return err
		})
	})
	return found, err
}
