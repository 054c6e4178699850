package envelope_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/idem-go/idem/internal/envelope"
)

func TestOutcomeSurvives(t *testing.T) {
	t.Parallel()
	for _, want := range []envelope.Outcome{
		{Kind: envelope.Value, Codec: "msgpack", Name: "example.com/pay.Receipt", Payload: []byte{0, 1, 0xff}},
		{Kind: envelope.Failure, Name: "declined", Text: "card declined", Payload: []byte{}},
		{Kind: envelope.Omitted, Payload: []byte{}},
	} {
		data := append(envelope.AppendHeader(nil, want.Kind, want.Codec, want.Name, want.Text), want.Payload...)
		got, err := envelope.Parse(data)
		if err != nil || got.Kind != want.Kind || got.Codec != want.Codec || got.Name != want.Name ||
			got.Text != want.Text || !bytes.Equal(got.Payload, want.Payload) {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
}

func TestFormIsFrozen(t *testing.T) {
	t.Parallel()
	got := append(envelope.AppendHeader(nil, envelope.Value, "raw", "string", ""), "x"...)
	if want := "\x01\x00\x01\x03raw\x06string\x00x"; string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTransformsAreNamedInTheirOrder(t *testing.T) {
	t.Parallel()
	data := append(envelope.AppendTransformed(nil, []string{"zstd", "aead"}), "sealed"...)
	if want := "\x01\x02\x04zstd\x04aeadsealed"; string(data) != want {
		t.Errorf("%q, want %q", data, want)
	}
	o, err := envelope.Parse(data)
	if err != nil || len(o.Transforms) != 2 || o.Transforms[1] != "aead" || string(o.Payload) != "sealed" {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestNewerFormatIsToldFromDamage(t *testing.T) {
	t.Parallel()
	if _, err := envelope.Parse([]byte{2, 0, 1, 0, 0, 0}); !errors.Is(err, envelope.ErrNewer) {
		t.Error(err)
	}
	for _, data := range [][]byte{nil, {1}, {0, 0, 1}, {1, 9, 1, 0, 0, 0}, {1, 1}, {1, 2, 1, 0x61, 5}, {1, 0, 9, 0, 0, 0}, {1, 0, 1, 0xff, 0xff, 0xff, 0x7f}, {1, 0, 1, 5, 'a'}} {
		if _, err := envelope.Parse(data); !errors.Is(err, envelope.ErrMalformed) {
			t.Errorf("% x: %v", data, err)
		}
	}
}

func TestDamageIsFound(t *testing.T) {
	t.Parallel()
	body := append(envelope.AppendHeader(nil, envelope.Value, "raw", "string", ""), "x"...)
	stored := envelope.Close(bytes.Clone(body))
	if got := stored[len(body):]; string(got) != "\xb1\x5d\xde\x29" {
		t.Errorf("the form is frozen, but the checksum is % x", got)
	}
	if got, err := envelope.Open(stored); err != nil || !bytes.Equal(got, body) {
		t.Errorf("%q, %v", got, err)
	}
	for i := range stored {
		for b := 1; b < 256; b++ {
			damaged := bytes.Clone(stored)
			damaged[i] ^= byte(b)
			if got, err := envelope.Open(damaged); err == nil {
				t.Fatalf("% x was read as % x", damaged, got)
			}
		}
		if _, err := envelope.Open(stored[:i]); !errors.Is(err, envelope.ErrMalformed) {
			t.Fatalf("% x: %v", stored[:i], err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(envelope.AppendHeader(nil, envelope.Failure, "json", "declined", "card declined"))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := envelope.Parse(data)
		if err != nil || o.Transforms != nil {
			return
		}
		// Lengths may be written longer than they need be, so only the meaning must survive.
		again, err := envelope.Parse(append(envelope.AppendHeader(nil, o.Kind, o.Codec, o.Name, o.Text), o.Payload...))
		if err != nil || again.Name != o.Name || !bytes.Equal(again.Payload, o.Payload) {
			t.Fatalf("%+v, %v; want %+v", again, err, o)
		}
	})
}
