package idem

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/idem-go/idem/internal/canonical"
)

// fingerprintPrefix marks the rules of version 1: SHA-256 over the kind of the
// payload and its canonical bytes, no key.
const fingerprintPrefix = "\x01\x00\x00\x00"

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
func (p payload) fingerprint() ([]byte, error) {
	switch {
	case !p.given:
		return nil, nil
	case p.raw:
		return digest(kindBytes, p.bytes), nil
	}
	doc, err := json.Marshal(p.value)
	if err != nil {
		return nil, fmt.Errorf("the fingerprint's value cannot be written as JSON (use WithFingerprintBytes): %w", err)
	}
	if len(p.fields) > 0 {
		if doc, err = selectFields(doc, p.fields); err != nil {
			return nil, err
		}
	}
	form, err := canonical.Append(nil, doc)
	if err != nil {
		return nil, fmt.Errorf("the fingerprint's value has no canonical form (use WithFingerprintBytes): %w", err)
	}
	return digest(kindJSON, form), nil
}

func digest(kind string, data []byte) []byte {
	h := sha256.New()
	h.Write([]byte(kind))
	h.Write(data)
	return h.Sum([]byte(fingerprintPrefix))
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
