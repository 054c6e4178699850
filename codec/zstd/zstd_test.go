package zstd_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"testing"

	compress "github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"github.com/idem-go/idem/codec"
	"github.com/idem-go/idem/codec/zstd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func transform(tb testing.TB, opts ...zstd.Option) codec.Transform {
	tb.Helper()
	t, err := zstd.New(opts...)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

func TestOutcomeSurvivesAndShrinksOverTheThreshold(t *testing.T) {
	t.Parallel()
	z := transform(t)
	noise := make([]byte, 10_000)
	_, _ = rand.Read(noise)
	for name, row := range map[string]struct {
		in   []byte
		most int
	}{
		"empty":     {nil, 1},
		"small":     {bytes.Repeat([]byte("a"), 100), 101},
		"large":     {bytes.Repeat([]byte("abc"), 10_000), 300},
		"no weight": {noise, len(noise) + 1},
	} {
		sealed, err := z.Seal([]byte("head"), row.in, nil)
		if err != nil || !bytes.HasPrefix(sealed, []byte("head")) || len(sealed)-4 > row.most {
			t.Fatalf("%s: %d bytes of %d, %v", name, len(sealed), len(row.in), err)
		}
		if got, err := z.Open([]byte("x"), sealed[4:], nil); err != nil || string(got) != "x"+string(row.in) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

func TestBombIsRefusedWithoutUnpackingIt(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	z := transform(t, zstd.WithMaxSize(limit))
	bomb := make([]byte, 100*limit)
	if _, err := z.Seal(nil, bomb, nil); !errors.Is(err, zstd.ErrTooLarge) {
		t.Error("sealed:", err)
	}
	whole, err := compress.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	var streamed bytes.Buffer // without its size in the header
	stream, err := compress.NewWriter(&streamed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Write(bomb); err != nil {
		t.Fatal(err)
	}
	if err := stream.Close(); err != nil {
		t.Fatal(err)
	}
	for name, packed := range map[string][]byte{"whole": whole.EncodeAll(bomb, nil), "stream": streamed.Bytes()} {
		stored := append([]byte{1}, packed...)
		allocated := testing.Benchmark(func(b *testing.B) { //nolint:thelper // it is no helper
			for b.Loop() {
				if _, err := z.Open(nil, stored, nil); !errors.Is(err, zstd.ErrTooLarge) {
					b.Fatal(name, err)
				}
			}
		}).AllocedBytesPerOp()
		if allocated > 4*limit {
			t.Errorf("%s: %d bytes were allocated for a limit of %d", name, allocated, limit)
		}
	}
}

func TestDamageIsAnError(t *testing.T) {
	t.Parallel()
	z := transform(t)
	for _, stored := range [][]byte{nil, {2}, {1}, {1, 0, 0}, append([]byte{1}, "no frame"...)} {
		if got, err := z.Open(nil, stored, nil); err == nil {
			t.Errorf("% x was opened as %q", stored, got)
		}
	}
	if _, err := zstd.New(zstd.WithMaxSize(0)); err == nil {
		t.Error("a maximum of 0 was taken")
	}
}

func FuzzOpen(f *testing.F) {
	z := transform(f, zstd.WithMaxSize(1<<16))
	sealed, err := z.Seal(nil, bytes.Repeat([]byte("abc"), 1000), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealed)
	f.Fuzz(func(t *testing.T, stored []byte) {
		if got, err := z.Open(nil, stored, nil); err == nil && len(got) > max(len(stored), 1<<16) {
			t.Fatalf("%d bytes", len(got))
		}
	})
}
