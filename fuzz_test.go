package idem

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem/codec"
	"github.com/idem-go/idem/driver"
	"github.com/idem-go/idem/internal/envelope"
)

func FuzzJoinKey(f *testing.F) {
	f.Add("a:b", "c", "a", "b:c")
	f.Add("1:a,", "x", "a", "1:x,")
	f.Add(strings.Repeat("k", 254), "", strings.Repeat("k", 255), "~")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		same := a == c && b == d
		if key := JoinKey(a, b); key != "" && (key == JoinKey(c, d)) != same {
			t.Errorf("%q, %q and %q, %q are both %q", a, b, c, d, key)
		}
		if key := JoinKey(a, b); key != "" && (key == JoinKey(c) || key == JoinKey(a, b, c)) {
			t.Errorf("lists of several lengths are %q", key)
		}
		if a != "" && c != "" && b != "" && d != "" {
			stored := driver.Key{Scope: joinScope(a, b), ID: shorten(b)}
			if other := (driver.Key{Scope: joinScope(c, d), ID: shorten(d)}); (stored == other || stored.String() == other.String()) != same {
				t.Errorf("%q, %q and %q, %q are both %+v", a, b, c, d, stored)
			}
			if joinScope(a) == joinScope(c, d) {
				t.Errorf("%q and %q, %q are one scope", a, c, d)
			}
			if len(stored.Scope) > driver.MaxKeyPart || len(stored.ID) > driver.MaxKeyPart {
				t.Errorf("%d and %d bytes are stored", len(stored.Scope), len(stored.ID))
			}
		}
	})
}

// parcel has members of all kinds that a key may lead to or through.
type parcel struct {
	ID     string `json:"id"`
	Next   *parcel
	Meta   map[string]any
	Any    any
	Total  *big.Int
	At     time.Time
	N      int8
	U      *uint64
	F      float64
	B      bool
	Pause  time.Duration
	Raw    json.RawMessage
	Labels map[Alias]Alias
}

func FuzzKeyPath(f *testing.F) {
	for _, path := range []string{"id", "Next.Next.id", "Meta.x", "Meta.m.y", "Any.id", "Total", "At", "N", "U", "F", "Pause", "Labels.a", "..", ""} {
		f.Add(path, `{"id":"o-1","Next":{"id":"x","Total":5},"Meta":{"x":"y","m":{"y":1}},"N":-3,"Labels":{"a":"b"}}`)
	}
	f.Fuzz(func(t *testing.T, path, doc string) {
		var in parcel
		if json.Unmarshal([]byte(doc), &in) != nil { //nolint:musttag // names of both kinds are found
			in = parcel{}
		}
		in.Any = &in
		key, err := KeyPath[parcel](path)
		if err != nil {
			if !errors.Is(err, ErrConfig) {
				t.Errorf("%q: %v", path, err)
			}
			return
		}
		byPointer, err := KeyPath[*parcel](path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := key(in)
		again, errAgain := byPointer(&in)
		if got != again || (err == nil) != (errAgain == nil) {
			t.Errorf("%q: %q, %v and %q, %v", path, got, err, again, errAgain)
		}
		if path == "id" && (got != in.ID || err != nil) {
			t.Errorf("%q is not %q, %v", got, in.ID, err)
		}
	})
}

type declined struct{ Code string }

func (d *declined) Error() string { return "declined: " + d.Code }

// replayOf answers a call with what a store may hold.
func replayOf(tb testing.TB, op *Operation, stored []byte) error {
	tb.Helper()
	r := runner[parcelValue]{fn: func(context.Context) (parcelValue, error) { return parcelValue{}, nil }}
	c := r.state()
	c.work = &r
	if err := c.prepare(context.Background(), "k", []ExecuteOption{On(op)}); err != nil {
		tb.Fatal(err)
	}
	return c.answer(driver.ClaimResult{Decision: driver.DecisionCompleted, Outcome: stored, Format: recordFormat})
}

type parcelValue struct {
	ID    string
	Items []string
	Next  *parcelValue
	At    time.Time
}

func FuzzReplay(f *testing.F) {
	op := replayer(f)
	value, err := codec.MessagePack().Append(nil, &parcelValue{ID: "x", Items: []string{"a"}, At: time.Unix(1, 0)})
	if err != nil {
		f.Fatal(err)
	}
	named := appendNamed(nil, codec.MessagePack(), op.named(errors.Join(&declined{"x"}, context.Canceled)))
	f.Add(append(envelope.AppendHeader(nil, envelope.Value, "msgpack", typeName(reflect.TypeFor[parcelValue]()), ""), value...))
	f.Add(append(envelope.AppendHeader(nil, envelope.Value, "json", typeName(reflect.TypeFor[parcelValue]()), ""), `{"ID":"x"}`...))
	f.Add(append(envelope.AppendHeader(nil, envelope.Failure, "msgpack", "d", "declined: x"), named...))
	f.Add(envelope.AppendHeader(nil, envelope.Omitted, "", "", ""))
	f.Add(envelope.AppendTransformed(nil, []string{"aead"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, stored := range [][]byte{data, envelope.Close(slices.Clone(data))} {
			err := replayOf(t, op, stored)
			var e *Error
			var r *ReplayedError
			if err != nil && !errors.As(err, &e) && !errors.As(err, &r) {
				t.Errorf("%T: %v", err, err)
			}
			if e != nil && !errors.Is(e, ErrUnreadable) && !errors.Is(e, ErrResultOmitted) {
				t.Error(e)
			}
		}
	})
}
