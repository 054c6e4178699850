package canonical

import (
	"bytes"
	"errors"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

var errNoText = errors.New("text that is no valid UTF-8")

// HidesText reports whether a document has the escape that [encoding/json.Marshal]
// writes for bytes that are no UTF-8. The character U+FFFD it writes as it is.
func HidesText(doc []byte) bool {
	for {
		i := bytes.IndexByte(doc, '\\')
		if i < 0 {
			return false
		}
		if bytes.HasPrefix(doc[i:], []byte(`\ufffd`)) {
			return true
		}
		doc = doc[i+2:] // a document does not end within an escape
	}
}

// stringEnd returns where the string at i ends, behind its quote.
func (w *writer) stringEnd(i int) int {
	for i++; w.doc[i] != '"'; i++ {
		if w.doc[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// text returns what the string at i says, and where it ends.
func (w *writer) text(i int) (text []byte, end int, err error) {
	end = w.stringEnd(i)
	text = w.doc[i+1 : end-1]
	switch {
	case !utf8.Valid(text):
		return nil, 0, errNoText
	case bytes.IndexByte(text, '\\') >= 0:
		text, err = unescape(text)
	}
	return text, end, err
}

func unescape(text []byte) ([]byte, error) {
	plain := make([]byte, 0, len(text))
	for len(text) > 0 {
		i := bytes.IndexByte(text, '\\')
		if i < 0 {
			return append(plain, text...), nil
		}
		plain = append(plain, text[:i]...)
		char := text[i+1]
		text = text[i+2:]
		switch char {
		case 'b':
			char = '\b'
		case 'f':
			char = '\f'
		case 'n':
			char = '\n'
		case 'r':
			char = '\r'
		case 't':
			char = '\t'
		case 'u':
			r := hex(text)
			text = text[4:]
			if utf16.IsSurrogate(r) {
				if !bytes.HasPrefix(text, []byte(`\u`)) {
					return nil, errNoText
				}
				if r = utf16.DecodeRune(r, hex(text[2:])); r == utf8.RuneError {
					return nil, errNoText
				}
				text = text[6:]
			}
			plain = utf8.AppendRune(plain, r)
			continue
		}
		plain = append(plain, char)
	}
	return plain, nil
}

// hex reads the four digits of an escape, which the syntax promises.
func hex(digits []byte) rune {
	n, _ := strconv.ParseUint(string(digits[:4]), 16, 16)
	return rune(n)
}

// string appends the form of a string.
func (w *writer) string(s []byte) {
	w.dst = strconv.AppendInt(append(w.dst, '"'), int64(len(s)), 10)
	w.dst = append(append(append(w.dst, ':'), s...), '"')
}
