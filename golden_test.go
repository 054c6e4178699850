package idem

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem/codec"
	"github.com/idem-go/idem/driver"
)

// The derivations are frozen: a record that was stored under one of these must
// be found again by every later version. CASES K7.

func TestStoredKeysAreFrozen(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 300)
	for name, row := range map[string]struct{ got, want string }{
		"short":        {shorten("pay-42"), "pay-42"},
		"255 bytes":    {shorten(long[:255]), long[:255]},
		"256 bytes":    {shorten(long[:256]), long[:191] + "~ce16fe78208a4e93f7158e62393680e025b2ad584f4e875ce903a654bb74cf93"},
		"scope":        {joinScope("payments"), "payments"},
		"nested scope": {joinScope("payments", "tenant", "x"), "8:payments,6:tenant,1:x,"},
		"a digit":      {joinScope("1:a,"), "4:1:a,,"},
		"key":          {driver.Key{Scope: "payments", ID: "pay-42"}.String(), "8:payments:pay-42"},
	} {
		if row.got != row.want {
			t.Errorf("%s: %q, want %q", name, row.got, row.want)
		}
	}
}

func TestLongKeysStayApart(t *testing.T) { // CASES S8
	t.Parallel()
	prefix := strings.Repeat("k", 10_000)
	emoji := strings.Repeat("🙂", 128)
	seen := map[string]string{}
	for _, key := range []string{
		prefix + "a", prefix + "b", prefix, prefix[:256], prefix[:257], emoji, emoji + "🙂", shorten(prefix), shorten(prefix + "a"),
	} {
		stored := shorten(key)
		if len(stored) > driver.MaxKeyPart {
			t.Errorf("a key of %d bytes is stored in %d", len(key), len(stored))
		}
		if other, ok := seen[stored]; ok {
			t.Errorf("%.20q… (%d) and %.20q… (%d) are one record", key, len(key), other, len(other))
		}
		seen[stored] = key
	}
}

func TestFingerprintsAreFrozen(t *testing.T) {
	t.Parallel()
	type order struct {
		Amount int    `json:"amount"`
		Item   string `json:"item"`
	}
	for name, row := range map[string]struct {
		p    payload
		want string
	}{
		"struct":        {payload{given: true, value: order{500, "book"}}, "0100000087b0ddeab070ef35c4c3344cb30ac4cd310e1a2bbb84cb78421de5a488f63809"},
		"raw":           {payload{given: true, value: json.RawMessage(` {"item":"book", "amount":5e2}`)}, "0100000087b0ddeab070ef35c4c3344cb30ac4cd310e1a2bbb84cb78421de5a488f63809"},
		"bytes":         {payload{given: true, raw: true, bytes: []byte(`{"amount":500,"item":"book"}`)}, "01000000aa076b354802abb6f777ed485a02acf92aec4eb934dc765e949841be16338c0c"},
		"fields":        {payload{given: true, value: order{500, "book"}, fields: []string{"amount"}}, "01000000c62b14cdc5d72d614b667a06f3b57f8deb95be04ec93af7676b552561c2570f0"},
		"empty bytes":   {payload{given: true, raw: true}, "01000000388c5568fafc5325058396619a74cd28c3220a233a050d67bafe65dd313d0b23"},
		"null document": {payload{given: true}, "01000000d69cc6a58232eff0c7d46e39032ad3be18d0d6de84fb2545e3197fc14dd78863"},
	} {
		fp, err := row.p.fingerprint(nil)
		if err != nil {
			t.Error(name, err)
		}
		if got := hex.EncodeToString(fp); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}

func TestKeyedFingerprintsAreFrozenAndHideTheRequest(t *testing.T) {
	t.Parallel()
	p := payload{given: true, value: json.RawMessage(`{"amount":500}`)}
	key := []byte("0123456789abcdef")
	keyed, err := p.fingerprint(key)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := hex.EncodeToString(keyed), "015a13b14f2e4c9721a36c2584508c519f9570fc02e89a8c1830d8aa1b87582dce844caa"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	bare, _ := p.fingerprint(nil)
	other, _ := p.fingerprint([]byte("fedcba9876543210"))
	if !driver.SameFingerprint(keyed, bare) || !driver.SameFingerprint(keyed, other) {
		t.Error("fingerprints under different keys are compared")
	}
	changed, _ := payload{given: true, value: 1}.fingerprint(key)
	if driver.SameFingerprint(keyed, changed) {
		t.Error("two requests have one fingerprint")
	}
}

type (
	page[T any] struct{ Items []T }
	item        struct{ ID string }
)

func TestStoredTypeNamesAreFrozen(t *testing.T) {
	t.Parallel()
	type local struct{ ID string }
	for want, v := range map[string]any{
		"string":                                                       "",
		"github.com/idem-go/idem.item":                                 item{},
		"[]github.com/idem-go/idem.item":                               &[]item{},
		"[]*github.com/idem-go/idem.item":                              []*item{},
		"map[string][2]time.Time":                                      map[string][2]time.Time{},
		"map[github.com/idem-go/idem.item]uint8":                       map[item]byte{},
		"github.com/idem-go/idem.page[github.com/idem-go/idem.item]":   page[item]{},
		"github.com/idem-go/idem.page[[]github.com/idem-go/idem.item]": page[[]item]{},
		"[]github.com/idem-go/idem.local":                              []local{},
		"struct{}":                                                     struct{}{},
		`struct{github.com/idem-go/idem.item; At []time.Duration "json:\"at\""; V github.com/idem-go/idem.item}`: struct {
			item
			At []time.Duration `json:"at"`
			V  item
		}{},
		"[]github.com/idem-go/idem/codec.Codec": []codec.Codec{},
	} {
		if got := typeName(reflect.TypeOf(v)); got != want {
			t.Errorf("%T is stored as a\n%s, want\n%s", v, got, want)
		}
	}
}

func TestTextThatIsNoTextHasNoFingerprint(t *testing.T) {
	t.Parallel()
	for _, v := range []any{"a\xff", struct{ A string }{"\xfe"}, map[string]int{"\xff": 1}, json.RawMessage(`"\ud800"`), json.RawMessage("\"\xff\"")} {
		if _, err := (payload{given: true, value: v}).fingerprint(nil); err == nil || !strings.Contains(err.Error(), "use WithFingerprintBytes") {
			t.Errorf("%q: %v", v, err)
		}
	}
	raw, err := payload{given: true, value: json.RawMessage(`{"a":"\ufffd"}`)}.fingerprint(nil)
	if err != nil {
		t.Fatal(err)
	}
	own, err := payload{given: true, value: map[string]string{"a": "\uFFFD"}}.fingerprint(nil)
	if err != nil || !bytes.Equal(raw, own) {
		t.Fatal(err)
	}
}
