package idemsql

import (
	"database/sql"
	"math"
	"strconv"
	"strings"

	"github.com/idem-go/idem/driver"
)

// head scans the numbers of a record, which come as one text: a column apiece
// would cost drivers and servers more than the read itself.
type head struct{ *record }

// dest is what {record} is scanned into.
func (r *record) dest() []any {
	return []any{head{r}, &r.token, &r.fingerprint, &r.outcome}
}

// Scan implements [sql.Scanner]. It never fails: what is wrong with a record is
// judged after its format.
func (h head) Scan(src any) error {
	var text string
	switch src := src.(type) {
	case string:
		text = src
	case []byte:
		text = string(src)
	}
	r := h.record
	f := fields{rest: text}
	r.format = f.number()
	r.state = driver.State(f.small())
	r.guarantee = driver.Guarantee(f.small())
	r.onLapse = driver.OnLapse(f.small())
	r.fence, r.generation, r.attempt = f.number(), f.number(), int(f.number())
	r.tookOver = f.number() != 0
	r.claimedAt = f.number()
	r.leaseEnd, r.endedAt = f.null(), f.null()
	r.retention, r.tombstone = f.null(), f.null()
	r.now = f.number()
	r.garbled = f.bad || f.rest != ""
	return nil
}

// fields are numbers with a space between each two; nothing at all stands for NULL.
type fields struct {
	rest string
	bad  bool // one was no number
}

func (f *fields) null() sql.NullInt64 {
	var field string
	field, f.rest, _ = strings.Cut(f.rest, " ")
	if field == "" {
		return sql.NullInt64{}
	}
	n, err := strconv.ParseInt(field, 10, 64)
	f.bad = f.bad || err != nil
	return sql.NullInt64{Int64: n, Valid: true}
}

func (f *fields) number() int64 {
	n := f.null()
	f.bad = f.bad || !n.Valid
	return n.Int64
}

// small is 0, which no record has, for a number that is not small.
func (f *fields) small() uint8 {
	if n := f.null().Int64; n > 0 && n <= math.MaxUint8 {
		return uint8(n)
	}
	return 0
}
