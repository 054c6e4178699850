package idem_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/codec"
)

type receipt struct {
	Amount int
	ID     string
}

// BenchmarkMemory is what idem costs where the store costs next to nothing,
// beside the codec's share of it.
func BenchmarkMemory(b *testing.B) {
	ctx := b.Context()
	want := receipt{Amount: 500, ID: "ch_1"}
	charge := func(context.Context) (receipt, error) { return want, nil }

	b.Run("first", func(b *testing.B) {
		op := newOperation(b, idem.AtLeastOnce)
		keys := make([]string, b.N)
		for i := range keys {
			keys[i] = "pay-" + strconv.Itoa(i)
		}
		b.ReportAllocs()
		b.ResetTimer()
		for _, key := range keys {
			if _, err := idem.Execute(ctx, key, charge, idem.On(op)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("replay", func(b *testing.B) {
		op := newOperation(b, idem.AtLeastOnce)
		b.ReportAllocs()
		for b.Loop() {
			if got, err := idem.Execute(ctx, "pay-42", charge, idem.On(op)); err != nil || got != want {
				b.Fatal(got, err)
			}
		}
	})
	b.Run("codec/encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := codec.MessagePack().Append(nil, &want); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("codec/decode", func(b *testing.B) {
		data, err := codec.MessagePack().Append(nil, &want)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			var got receipt
			if err := codec.MessagePack().Decode(data, &got); err != nil {
				b.Fatal(err)
			}
		}
	})
}
