// Package aead encrypts outcomes at rest, with a ring of keys that can be rotated.
//
//	ring, err := aead.New(aead.Key{ID: "2026-11", Secret: secret})
//	op, err := idem.NewOperation("payments", store, g, idem.WithTransforms(ring))
//
// Each outcome has an AES-256-GCM key of its own, derived from the ring's key and 256
// random bits by HKDF-SHA256 (RFC 5869), so that there is no bound on how many a key may
// encrypt. Scope and key of the record are authenticated: an outcome that is moved to
// another record cannot be opened. Keys, states and times of records, the
// length of an outcome and fingerprints are not encrypted; see
// idem.WithFingerprintKey for the latter.
package aead

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/idem-go/idem/codec"
)

// SecretSize is the length of a secret in bytes.
const SecretSize = 32

const (
	version  = 1
	saltSize = 32
	info     = "idem outcome v1"
)

// ErrOpen: the outcome was encrypted with a key that the ring has not, was
// changed, or belongs to another record.
var ErrOpen = errors.New("aead: the outcome cannot be opened")

// Key is a key of a ring.
type Key struct {
	ID     string // stored with each outcome; 1 to 255 bytes, unique in the ring
	Secret []byte // SecretSize random bytes
}

// New returns a transform that encrypts with the key write, and decrypts with
// it and those in read. To rotate, put a new key in front and keep the old one
// in read until the last record that was written with it has expired.
func New(write Key, read ...Key) (codec.Transform, error) {
	r := ring{write: write.ID, secrets: map[string][]byte{}}
	for _, k := range append([]Key{write}, read...) {
		switch {
		case k.ID == "" || len(k.ID) > 255:
			return nil, fmt.Errorf("aead: a key's ID has %d bytes: use 1 to 255", len(k.ID))
		case len(k.Secret) != SecretSize:
			return nil, fmt.Errorf("aead: the secret of key %q has %d bytes: use %d random ones", k.ID, len(k.Secret), SecretSize)
		case r.secrets[k.ID] != nil:
			return nil, fmt.Errorf("aead: the ring has two keys with the ID %q", k.ID)
		}
		r.secrets[k.ID] = append([]byte(nil), k.Secret...)
	}
	return r, nil
}

type ring struct {
	write   string
	secrets map[string][]byte
}

// Name implements [codec.Transform].
func (ring) Name() string { return "aead" }

// Seal implements [codec.Transform]. The stored form is a version, the key's
// ID behind its length, the salt, and the ciphertext with its tag.
func (r ring) Seal(dst, outcome, aad []byte) ([]byte, error) {
	start := len(dst)
	dst = append(append(dst, version, byte(len(r.write))), r.write...) //nolint:gosec // New has checked the length
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails
	dst = append(dst, salt...)
	gcm, err := r.cipher(r.write, salt)
	if err != nil {
		return nil, err
	}
	return gcm.Seal(dst, nonce(gcm), outcome, bind(dst[start:], aad)), nil //nolint:gosec // see nonce
}

// Open implements [codec.Transform].
func (r ring) Open(dst, stored, aad []byte) ([]byte, error) {
	if len(stored) < 2 || stored[0] != version {
		return nil, fmt.Errorf("%w: it was not written by this package", ErrOpen)
	}
	head := 2 + int(stored[1]) + saltSize
	if len(stored) < head {
		return nil, fmt.Errorf("%w: it is cut off", ErrOpen)
	}
	id := string(stored[2 : 2+int(stored[1])])
	if r.secrets[id] == nil {
		return nil, fmt.Errorf("%w: the ring has no key %q", ErrOpen, id)
	}
	gcm, err := r.cipher(id, stored[head-saltSize:head])
	if err != nil {
		return nil, err
	}
	outcome, err := gcm.Open(dst, nonce(gcm), stored[head:], bind(stored[:head], aad))
	if err != nil {
		return nil, fmt.Errorf("%w: it was changed, or belongs to another record", ErrOpen)
	}
	return outcome, nil
}

// cipher returns the cipher of one outcome.
func (r ring) cipher(id string, salt []byte) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, r.secrets[id], salt, info, SecretSize)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// nonce is constant: no key encrypts twice.
func nonce(gcm cipher.AEAD) []byte { return make([]byte, gcm.NonceSize()) }

// bind authenticates the head of the stored form with the record's name.
func bind(head, aad []byte) []byte { return append(append([]byte(nil), head...), aad...) }
