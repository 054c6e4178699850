package canonical_test

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/canonical"
)

func TestEqualDocumentsHaveOneForm(t *testing.T) { // CASES K1, K2
	t.Parallel()
	for want, docs := range map[string][]string{
		`{"1:a":1e0,"1:b":[1e0,2e0]}`:           {`{"a":1,"b":[1,2]}`, ` { "b" : [ 1.0, 2e0 ], "a" : 10e-1 } `},
		`{"1:x":{"1:y":{"1:a":0e0,"1:b":0e0}}}`: {`{"x":{"y":{"b":0,"a":0}}}`, `{"x":{"y":{"a":-0.0,"b":0e9}}}`},
		`9007199254740992e0`:                    {`9007199254740992`, `9007199254740992.000`},
		`9007199254740993e0`:                    {`9007199254740993`},
		`-12e1`:                                 {`-120`, `-1.2e2`, `-1.2E+2`},
		`5e-1`:                                  {`0.5`, `0.50`, `5e-1`},
		`12345678901234567890123456789e0`:       {`12345678901234567890123456789`},
		`"2:é"`:                                 {`"é"`, `"\u00e9"`},
		"\"3:e\u0301\"":                         {`"e\u0301"`}, // another string, though it looks the same
		`"3:a/b"`:                               {`"a/b"`, `"a\/b"`},
		`null`:                                  {`null`},
		`[true,false,null]`:                     {`[true, false, null]`},
		`[1e0,2e0]`:                             {`[1,2]`},
		`[2e0,1e0]`:                             {`[2,1]`},
		`{}`:                                    {`{}`, ` { } `},
		`{"1:a":"1:1"}`:                         {`{"a":"1"}`},
		`{"1:a":1e0}`:                           {`{"a":1}`},
		`{"1:a":{"1:b":1e0}}`:                   {`{"a":{"b":1}}`},
		`{"3:a.b":1e0}`:                         {`{"a.b":1}`},
		`1e-` + `1073741824`:                    {`1e-1073741824`},
		"\"4:😀\"":                               {`"😀"`, `"\ud83d\ude00"`, `"\uD83D\uDE00"`},
		`"3:` + "\uFFFD" + `"`:                  {`"\ufffd"`, "\"\uFFFD\""},
		"\"12:" + "\"\\/\b\f\n\r\t\x00:{[" + "\"":           {`"\"\\\/\b\f\n\r\t\u0000:{["`},
		"\"" + "6:\u2028\u2029" + "\"":                      {`"\u2028\u2029"`},
		"\"" + "3:<>&" + "\"":                               {`"<>&"`, `"\u003c\u003e\u0026"`},
		strings.Repeat("[", 900) + strings.Repeat("]", 900): {strings.Repeat("[", 900) + strings.Repeat("]", 900)},
	} {
		for _, doc := range docs {
			if got, err := canonical.Append(nil, []byte(doc)); err != nil || string(got) != want {
				t.Errorf("%.60s: %.80s, %v; want %.80s", doc, got, err, want)
			}
		}
	}
}

func TestDocumentsWithoutAFormAreRefused(t *testing.T) { // CASES K3
	t.Parallel()
	for _, doc := range []string{
		``, `{`, `[1,`, `{"a":1,"a":1}`, `{"a":1,"\u0061":2}`, `{"x":{"a":1,"a":2}}`, `1 2`, `{} {}`, `nul`, `01`, `{"a"}`,
		`"\ud800"`, `"\udc00\ud800"`, `"\ud800x"`, `"\ud800\u0041"`, "\"\xff\"", "{\"\xed\xa0\x80\":1}", `{"\udfff":1}`,
		`1e99999999999999999999`, `1e2147483648`,
		strings.Repeat("[", 2000) + strings.Repeat("]", 2000),
	} {
		if got, err := canonical.Append(nil, []byte(doc)); err == nil {
			t.Errorf("%.60s: %.80s", doc, got)
		}
	}
}

func TestCostGrowsWithTheDocument(t *testing.T) { //nolint:paralleltest // it measures
	const deep = 900
	nested := func(body string) []byte {
		return []byte(strings.Repeat(`{"b":1,"a":`, deep) + body + strings.Repeat("}", deep))
	}
	small := allocated(t, nested("0"))
	large := allocated(t, nested(`"`+strings.Repeat("x", 1<<20)+`"`))
	if limit := small + 16<<20; large > limit {
		t.Errorf("1 MiB inside %d objects allocates %d bytes, at most %d are allowed", deep, large, limit)
	}
	for _, doc := range []string{
		"[" + strings.Repeat("0,", 50_000) + "0]", "[" + strings.Repeat("[],", 50_000) + "0]", "[" + strings.Repeat("{},", 50_000) + "0]",
		strings.Repeat(`{"":`, deep) + "0" + strings.Repeat("}", deep), "[" + strings.Repeat(`{"":0},`, 50_000) + "0]",
		`"` + strings.Repeat(`\u0000`, 50_000) + `"`, `"` + strings.Repeat("[", 100_000) + `"`, strings.Repeat("[", 9000),
	} {
		if got := allocated(t, []byte(doc)); got > 64*uint64(len(doc))+64<<10 {
			t.Errorf("%.20s…: %d bytes allocate %d", doc, len(doc), got)
		}
	}
}

func allocated(t *testing.T, doc []byte) uint64 {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := canonical.Append(nil, doc)
	runtime.ReadMemStats(&after)
	if err != nil && json.Valid(doc) {
		t.Error(err)
	}
	return after.TotalAlloc - before.TotalAlloc
}

func FuzzAppend(f *testing.F) {
	for _, doc := range []string{`{"a":[1,2.50,"x"],"b":null}`, `-0`, `"\ud800"`, `[[[]]]`} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		first, err := canonical.Append(nil, doc)
		if err != nil {
			return
		}
		var v any
		d := json.NewDecoder(bytes.NewReader(doc))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%q has the form %q: %v", doc, first, err)
		}
		if marshaled, err := json.Marshal(v); err == nil { // sorted otherwise, escaped otherwise
			if again, err := canonical.Append(nil, marshaled); err != nil || !bytes.Equal(again, first) {
				t.Fatalf("%q: %q and %q, %v", doc, first, again, err)
			}
		}
		spaced := append(append([]byte(" \n"), doc...), '\t')
		if again, err := canonical.Append(nil, spaced); err != nil || !bytes.Equal(again, first) {
			t.Fatalf("%q: %q and %q, %v", doc, first, again, err)
		}
	})
}
