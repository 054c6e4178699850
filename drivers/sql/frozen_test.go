package idemsql_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem/driver"
)

// TestRecordsOfTheFirstFormatAreRead reads what the first version wrote. What
// is in testdata is never changed.
func TestRecordsOfTheFirstFormatAreRead(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.table = "idem_records"
		b.readFrozen("sqlite")
	})
	onServers(t, func(t *testing.T, s server) {
		t.Helper()
		file := "postgres"
		if s.family() {
			file = "mysql"
		}
		s.open(t).readFrozen(file)
	})
}

func (b *bundle) readFrozen(file string) {
	t := b.t
	t.Helper()
	text, err := os.ReadFile("testdata/v1_" + file + ".sql")
	must(t, err)
	b.db.MustExec(strings.ReplaceAll(string(text), "{table}", b.table))
	at := func(us int64) time.Time { return time.UnixMicro(us).UTC() }
	for id, want := range map[string]driver.Record{
		"completed": {
			State: driver.StateCompleted, Guarantee: driver.AtLeastOnce, OnLapse: driver.TakeOver, Attempt: 1,
			Fence: 1700000000000001, Generation: 1700000000000001, ClaimedAt: at(1700000000000001), CompletedAt: at(1700000000500000),
			LifeLeft: driver.RetainForever, Fingerprint: []byte("v1--\x01\x02"), Outcome: []byte("\x00\xff'"),
		},
		"claimed": {
			State: driver.StateClaimed, Guarantee: driver.AtLeastOnce, OnLapse: driver.TakeOver, Attempt: 2,
			Fence: 1700000000000003, Generation: 1700000000000002, ClaimedAt: at(1700000000000003),
		},
		"uncertain": {
			State: driver.StateUncertain, Guarantee: driver.AtMostOnce, OnLapse: driver.Uncertain, Attempt: 1,
			Fence: 1700000000000004, Generation: 1700000000000004, ClaimedAt: at(1700000000000004), CompletedAt: at(1700000000600000),
			LifeLeft: driver.RetainForever,
		},
		"lapsed": {
			State: driver.StateUncertain, Guarantee: driver.AtMostOnce, OnLapse: driver.Uncertain, Attempt: 1,
			Fence: 1700000000000005, Generation: 1700000000000005, ClaimedAt: at(1700000000000005), CompletedAt: at(1700000001000000),
			LifeLeft: driver.RetainForever,
		},
		"expired": {
			State: driver.StateExpired, Guarantee: driver.ExactlyOnce, OnLapse: driver.TakeOver, Attempt: 1,
			Fence: 1700000000000006, Generation: 1700000000000006, ClaimedAt: at(1700000000000006), CompletedAt: at(1700000000700000),
			LifeLeft: driver.RetainForever,
		},
		"released": {
			State: driver.StateReleased, Guarantee: driver.AtLeastOnce, OnLapse: driver.TakeOver, Attempt: 3,
			Fence: 1700000000000008, Generation: 1700000000000007, ClaimedAt: at(1700000000000007),
		},
	} {
		res, err := b.Inspect(t.Context(), driver.InspectParams{Key: key(id)})
		must(t, err)
		got := res.Record
		if id == "claimed" && got.LeaseLeft < time.Hour || id == "released" && got.LifeLeft < time.Hour {
			t.Errorf("%s is over too soon: %+v", id, got)
		}
		got.LeaseLeft = 0
		if id == "released" {
			got.LifeLeft = 0
		}
		want.Key, want.Format = key(id), 1
		if !res.Found || !sameRecord(got, want) {
			t.Errorf("%s: %+v\nwant %+v", id, got, want)
		}
	}
	b.mustClaim(claimOf("released"), driver.DecisionClaimed)
	b.mustClaim(claimOf("claimed"), driver.DecisionInFlight)
	b.mustClaim(claimOf("lapsed"), driver.DecisionUncertain)
	b.mustClaim(claimOf("expired"), driver.DecisionExpired)
}

func sameRecord(a, b driver.Record) bool {
	same := bytes.Equal(a.Outcome, b.Outcome) && bytes.Equal(a.Fingerprint, b.Fingerprint)
	a.Outcome, a.Fingerprint, b.Outcome, b.Fingerprint = nil, nil, nil, nil
	x, y := a, b
	return same && x.Key == y.Key && x.State == y.State && x.Guarantee == y.Guarantee && x.OnLapse == y.OnLapse &&
		x.Fence == y.Fence && x.Generation == y.Generation && x.Attempt == y.Attempt && x.Format == y.Format &&
		x.LeaseLeft == y.LeaseLeft && x.LifeLeft == y.LifeLeft && x.ClaimedAt.Equal(y.ClaimedAt) && x.CompletedAt.Equal(y.CompletedAt)
}
