package aead_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/idem-go/idem/codec"
	"github.com/idem-go/idem/codec/aead"
)

func key(id string, fill byte) aead.Key {
	return aead.Key{ID: id, Secret: bytes.Repeat([]byte{fill}, aead.SecretSize)}
}

func ring(t *testing.T, write aead.Key, read ...aead.Key) codec.Transform {
	t.Helper()
	r, err := aead.New(write, read...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestOutcomeOpensOnlyForItsRecordAndUnchanged(t *testing.T) {
	t.Parallel()
	r, secret := ring(t, key("a", 1)), []byte("card 4111")
	sealed, err := r.Seal([]byte("head"), secret, []byte("payments:pay-42"))
	if err != nil || !bytes.HasPrefix(sealed, []byte("head")) || bytes.Contains(sealed, secret) {
		t.Fatalf("%q, %v", sealed, err)
	}
	sealed = sealed[4:]
	if got, err := r.Open([]byte("x"), sealed, []byte("payments:pay-42")); err != nil || string(got) != "xcard 4111" {
		t.Fatalf("%q, %v", got, err)
	}
	if _, err := r.Open(nil, sealed, []byte("payments:pay-43")); !errors.Is(err, aead.ErrOpen) {
		t.Error("a moved outcome was opened:", err)
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		if _, err := r.Open(nil, changed, []byte("payments:pay-42")); !errors.Is(err, aead.ErrOpen) {
			t.Errorf("byte %d changed: %v", i, err)
		}
		if _, err := r.Open(nil, sealed[:i], []byte("payments:pay-42")); !errors.Is(err, aead.ErrOpen) {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
	again, err := r.Seal(nil, secret, []byte("payments:pay-42"))
	if err != nil || bytes.Equal(again, sealed) {
		t.Error("two outcomes were sealed alike:", err)
	}
}

func TestRotatedKeyStillOpens(t *testing.T) {
	t.Parallel()
	sealed, err := ring(t, key("old", 1)).Seal(nil, []byte("x"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ring(t, key("new", 2), key("old", 1)).Open(nil, sealed, nil); err != nil || string(got) != "x" {
		t.Fatal(got, err)
	}
	for name, wrong := range map[string]codec.Transform{"absent": ring(t, key("new", 2)), "another": ring(t, key("old", 2))} {
		if _, err := wrong.Open(nil, sealed, nil); !errors.Is(err, aead.ErrOpen) {
			t.Error(name, err)
		}
	}
}

func TestWrongRingIsRefused(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string][]aead.Key{
		"short secret": {{ID: "a", Secret: []byte("short")}},
		"no ID":        {key("", 1)},
		"long ID":      {key(string(make([]byte, 256)), 1)},
		"twice":        {key("a", 1), key("a", 2)},
	} {
		if _, err := aead.New(keys[0], keys[1:]...); err == nil {
			t.Error(name)
		}
	}
}

func FuzzOpen(f *testing.F) {
	r, err := aead.New(key("a", 1))
	if err != nil {
		f.Fatal(err)
	}
	sealed, err := r.Seal(nil, []byte("x"), []byte("k"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealed[:len(sealed)-1])
	f.Fuzz(func(t *testing.T, stored []byte) {
		if got, err := r.Open(nil, stored, []byte("k")); err == nil && string(got) != "x" {
			t.Fatalf("%q was opened as %q", stored, got)
		}
	})
}
