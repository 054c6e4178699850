package idem

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/idem-go/idem/driver"
	"github.com/idem-go/idem/internal/canonical"
)

// A fingerprint is a version prefix and a hash. Version 1, frozen: a byte 1,
// then which key was used (zero: none, SHA-256; else the first bytes of the
// key's own hash, HMAC-SHA256), then the hash over the kind of the payload and its
// canonical bytes. Fingerprints with different prefixes are not compared, so that a
// version or a key can change while calls go on.
const fingerprintVersion = 1

type fingerprintKeyOption struct {
	forOperation
	secret []byte
}

// WithFingerprintKey makes fingerprints keyed hashes (HMAC-SHA256): whoever
// reads the store and guesses a request cannot check the guess. The secret has at
// least 16 bytes. While calls with an old and a new secret meet, their
// fingerprints are not compared. Default: a bare SHA-256.
func WithFingerprintKey(secret []byte) OperationOption { return fingerprintKeyOption{secret: secret} }

// minFingerprintKey is the shortest secret, in bytes.
const minFingerprintKey = 16

func (op *Operation) setFingerprintKey(secret []byte) error {
	if len(secret) < minFingerprintKey {
		return fmt.Errorf("WithFingerprintKey: the secret has %d bytes: use at least %d random ones", len(secret), minFingerprintKey)
	}
	op.fingerprintKey = slices.Clone(secret)
	return nil
}

// The kinds keep a document and the same bytes given as such apart.
const (
	kindJSON  = "json\x00"
	kindBytes = "bytes\x00"
)

// payload is what a call's fingerprint is made of.
type payload struct {
	given  bool
	value  any
	fields []string
	bytes  []byte
	raw    bool // bytes, not value
}

// fingerprint returns the hash of the payload behind its version prefix, or
// nil if the call has none.
func (p payload) fingerprint(key []byte) ([]byte, error) {
	switch {
	case !p.given:
		return nil, nil
	case p.raw:
		return digest(key, kindBytes, p.bytes), nil
	}
	doc, err := json.Marshal(p.value)
	if err != nil {
		return nil, fmt.Errorf("the fingerprint's value cannot be written as JSON (use WithFingerprintBytes): %w", err)
	}
	if !isJSON(p.value) && canonical.HidesText(doc) {
		return nil, errors.New("the fingerprint's value holds text that is no valid UTF-8: use WithFingerprintBytes")
	}
	form, err := canonical.Append(nil, doc)
	if err != nil {
		return nil, fmt.Errorf("the fingerprint's value has no canonical form (use WithFingerprintBytes): %w", err)
	}
	if len(p.fields) > 0 { // of a document in which no member occurs twice
		if doc, err = selectFields(doc, p.fields); err != nil {
			return nil, err
		}
		if form, err = canonical.Append(form[:0], doc); err != nil {
			return nil, err
		}
	}
	return digest(key, kindJSON, form), nil
}

// isJSON reports whether the value is a document already, in which any escape is its author's.
func isJSON(v any) bool {
	switch v.(type) {
	case json.RawMessage, *json.RawMessage:
		return true
	}
	return false
}

func digest(key []byte, kind string, data []byte) []byte {
	prefix := [driver.FingerprintPrefix]byte{fingerprintVersion}
	h := sha256.New()
	if len(key) > 0 {
		id := sha256.Sum256(append([]byte("idem fingerprint key"), key...))
		copy(prefix[1:], id[:])
		h = hmac.New(sha256.New, key)
	}
	h.Write([]byte(kind))
	h.Write(data)
	return h.Sum(prefix[:])
}

// selectFields returns a document of the named fields alone. A field that is
// absent is left out, which is not the same as null.
func selectFields(doc []byte, fields []string) ([]byte, error) {
	chosen := make(map[string]json.RawMessage, len(fields))
	for _, field := range fields {
		current, found := json.RawMessage(doc), true
		for name := range strings.SplitSeq(field, ".") {
			var members map[string]json.RawMessage
			if err := json.Unmarshal(current, &members); err != nil {
				return nil, fmt.Errorf("the fingerprint's field %q is not inside an object", field)
			}
			if current, found = members[name]; !found {
				break
			}
		}
		if found {
			chosen[field] = current
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("the fingerprint's value has none of the fields %q", fields)
	}
	return json.Marshal(chosen)
}
