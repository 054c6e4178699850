package codec_test

import (
	"encoding/hex"
	"encoding/json"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/idem-go/idem/codec"
)

// roundTrip returns the value as it comes back.
func roundTrip[T any](t *testing.T, c codec.Codec, v T) (got T) {
	t.Helper()
	data, err := c.Append(nil, &v)
	if err == nil {
		err = c.Decode(data, &got)
	}
	if err != nil {
		t.Fatalf("%s: %+v: %v", c.Name(), v, err)
	}
	return got
}

func times(t *testing.T) map[string]time.Time {
	t.Helper()
	at := time.Date(2026, 11, 30, 12, 30, 15, 987654321, time.UTC)
	all := map[string]time.Time{
		"zero": {}, "utc": at, "local": at.Local(), "unix": time.Unix(0, 0), "now": time.Now(), //nolint:gosmopolitan // the case
		"named": at.In(time.FixedZone("PST", -8*3600)), "unnamed": at.In(time.FixedZone("", 5*3600+1800)),
		"utc by another name": at.In(time.FixedZone("UTC", 0)),
		"before 1970":         time.Date(1, 2, 3, 4, 5, 6, 7, time.FixedZone("X", 60)),
		"far":                 time.Date(9998, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	for name, zone := range map[string]string{"winter": "Europe/Berlin", "half": "Asia/Kolkata"} {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		all[name], all[name+", in summer"] = at.In(loc), at.AddDate(0, -5, 0).In(loc)
	}
	return all
}

func TestTimeReplaysAsItWas(t *testing.T) { // CASES C2
	t.Parallel()
	type event struct {
		At     time.Time
		P      *time.Time
		All    []time.Time
		ByName map[string]time.Time
		Pair   [2]struct{ At time.Time }
	}
	for name, at := range times(t) {
		e := event{at, &at, []time.Time{at, {}}, map[string]time.Time{"x": at}, [2]struct{ At time.Time }{{at}, {}}}
		for _, c := range []codec.Codec{codec.MessagePack(), codec.JSON()} {
			got := roundTrip(t, c, e)
			for _, back := range []time.Time{got.At, *got.P, got.All[0], got.ByName["x"], got.Pair[0].At, roundTrip(t, c, at)} {
				if !back.Equal(at) || asJSON(t, back) != asJSON(t, at) {
					t.Errorf("%s: %s: %v, want %v", c.Name(), name, back, at)
				}
				if want := at.Round(0).String(); c == codec.MessagePack() && back.String() != want { // JSON keeps no abbreviation
					t.Errorf("%s: %v, want %v", name, back, want)
				}
			}
			if got.All[1] != (time.Time{}) || got.Pair[1].At != (time.Time{}) {
				t.Errorf("%s: a zero time came back as %#v", c.Name(), got.All[1])
			}
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestStoredTimesAreFrozen(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_700_000_000, 5)
	for want, at := range map[string]time.Time{
		"c70c01000000006553f10000000005":               at.UTC(),
		"c71301000000006553f10000000005ffff8f80505354": at.In(time.FixedZone("PST", -8*3600)),
		"c70c01fffffff1886e090000000000":               {},
		"c71001000000006553f1000000000500000000":       at.In(time.FixedZone("", 0)),
		"c71301000000006553f10000000005fffffffe4f6464": at.In(time.FixedZone("Odd", -2)),
	} {
		data, err := codec.MessagePack().Append(nil, &at)
		if got := hex.EncodeToString(data); err != nil || got != want {
			t.Errorf("%v is stored as %s, want %s (%v)", at, got, want, err)
		}
	}
}

func TestTimestampOfOtherWritersIsReadAsUTC(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Time{time.Unix(5, 0), time.Unix(5, 6), time.Unix(-5, 6), {}} {
		data, err := msgpack.Marshal(at)
		if err != nil {
			t.Fatal(err)
		}
		var got time.Time
		if err := codec.MessagePack().Decode(data, &got); err != nil || !got.Equal(at) || got.Location() != time.UTC {
			t.Errorf("%v, %v; want %v", got, err, at)
		}
	}
}
