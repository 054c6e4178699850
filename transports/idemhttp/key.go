package idemhttp

import (
	"errors"
	"net/http"
	"slices"
	"strings"
)

// maxKey is the largest length of a key, in bytes.
const maxKey = 255

// KeyFunc takes the key out of a request; "": it has none. The request's body
// can be read.
type KeyFunc func(*http.Request) (string, error)

// KeyFromQuery takes the key from a query parameter.
func KeyFromQuery(name string) KeyFunc {
	return func(r *http.Request) (string, error) { return one(r.URL.Query()[name]) }
}

// KeyFromForm takes the key from a field of a URL-encoded form in the body.
func KeyFromForm(name string) KeyFunc {
	return func(r *http.Request) (string, error) {
		if err := r.ParseForm(); err != nil {
			return "", errors.New("the form cannot be read")
		}
		return one(r.PostForm[name])
	}
}

var (
	errTwoKeys = errors.New("there are two keys: send one")
	errBadKey  = errors.New("the key must be 1 to 255 printable ASCII characters, without a comma unless it is quoted")
	errStrict  = errors.New(`the key must be a quoted string: "abc"`)
)

func one(values []string) (string, error) {
	switch len(values) {
	case 0:
		return "", nil
	case 1:
		return checkKey(values[0])
	}
	return "", errTwoKeys
}

// headerKey takes the key from the header: a structured-field string (RFC
// 9651, 3.3.3), or a bare value. A comma in a bare value is refused: proxies
// make one line of two with it.
func (c *config) headerKey(r *http.Request) (key string, present bool, err error) {
	lines := r.Header.Values(c.keyHeader)
	switch len(lines) {
	case 0:
		return "", false, nil
	case 1:
	default:
		return "", true, errTwoKeys
	}
	value := strings.Trim(lines[0], " \t")
	if !strings.HasPrefix(value, `"`) {
		if c.strict {
			return "", true, errStrict
		}
		if strings.ContainsAny(value, `,"`) {
			return "", true, errBadKey
		}
		key, err = checkKey(value)
		return key, true, err
	}
	if value, err = unquote(value); err == nil {
		value, err = checkKey(value)
	}
	return value, true, err
}

// unquote reads a structured-field string.
func unquote(s string) (string, error) {
	if len(s) < 2 || !strings.HasSuffix(s, `"`) {
		return "", errBadKey
	}
	s = s[1 : len(s)-1]
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return "", errBadKey
		case s[i] != '\\':
		case i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			i++
		default:
			return "", errBadKey
		}
		b.WriteByte(s[i])
	}
	return b.String(), nil
}

func checkKey(key string) (string, error) {
	printable := func(c byte) bool { return c >= ' ' && c <= '~' }
	if len(key) > maxKey || strings.TrimSpace(key) == "" ||
		slices.ContainsFunc([]byte(key), func(c byte) bool { return !printable(c) }) {
		return "", errBadKey
	}
	return key, nil
}
