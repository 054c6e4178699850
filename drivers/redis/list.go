package idemredis

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/idem-go/idem/driver"
)

// How many keys a SCAN looks at.
const (
	minScan = 100
	maxScan = 1000
)

// cursor is how far a listing has come.
type cursor struct {
	Masters string   `json:"m"` // those that the listing goes through
	Done    int      `json:"d"` // how many of them are over
	Scan    uint64   `json:"s"` // of the next one
	Keys    []string `json:"k"` // that a scan found and no page has had yet, in base64
}

// List implements [driver.Lister] by SCAN over every master, in no order. A
// record may be listed twice. A page costs as many round trips as it takes to
// find its records among all keys of the server. If a master
// restarts or is replaced during a listing, the listing begins again by itself; what moves
// to another node of a cluster meanwhile may be missed. Keys that hold no
// readable record are left out.
func (s *Store) List(ctx context.Context, p driver.ListParams) (driver.ListResult, error) {
	if p.Limit < 1 {
		return driver.ListResult{}, invalid("a page of %d records", p.Limit)
	}
	at, err := parseCursor(p.After)
	if err != nil {
		return driver.ListResult{}, err
	}
	masters, err := s.masters(ctx)
	if err != nil {
		return driver.ListResult{}, failed("list", err)
	}
	if id := identity(masters); at.Masters != id {
		at = cursor{Masters: id}
	}
	l := &listing{Store: s, p: p, at: at, masters: masters}
	if err := l.page(ctx); err != nil {
		return driver.ListResult{}, failed("list", err)
	}
	return driver.ListResult{Records: l.records, Next: l.next()}, nil
}

// listing is one page under way.
type listing struct {
	*Store

	p       driver.ListParams
	at      cursor
	masters []node
	records []driver.Record
}

func (l *listing) page(ctx context.Context) error {
	for len(l.records) < l.p.Limit {
		if len(l.at.Keys) == 0 {
			if l.at.Done >= len(l.masters) {
				return nil
			}
			if err := l.scan(ctx); err != nil {
				return err
			}
			continue
		}
		n := min(len(l.at.Keys), l.p.Limit-len(l.records))
		if err := l.look(ctx, l.at.Keys[:n]); err != nil {
			return err
		}
		l.at.Keys = l.at.Keys[n:]
	}
	return nil
}

// scan looks for more keys.
func (l *listing) scan(ctx context.Context) error {
	c := l.masters[l.at.Done].client
	pattern := glob(l.prefix) + "[1-9]*"
	if l.p.Scope != "" {
		pattern = glob(l.prefix+strconv.Itoa(len(l.p.Scope))+":"+l.p.Scope+":") + "*"
	}
	count := int64(min(max(l.p.Limit, minScan), maxScan))
	entry, err := c.Do(ctx, c.B().Scan().Cursor(l.at.Scan).Match(pattern).Count(count).Build()).AsScanEntry()
	if err != nil {
		return err
	}
	slices.Sort(entry.Elements)
	l.at.Keys = slices.Compact(entry.Elements)
	l.at.Scan = entry.Cursor
	if entry.Cursor == 0 {
		l.at.Done++
	}
	return nil
}

// look reads the records of the keys, through the client that knows where they are.
func (l *listing) look(ctx context.Context, physical []string) error {
	var keys []string
	var names []driver.Key
	for _, name := range physical {
		if k, ok := parseKey(strings.TrimPrefix(name, l.prefix)); ok {
			keys, names = append(keys, name), append(names, k)
		}
	}
	for i, res := range lookScript.runAll(ctx, l.client, keys, make([][]string, len(keys))) {
		a, err := parse(res)
		switch {
		case errors.Is(err, driver.ErrCorrupt), errors.Is(err, driver.ErrNewerFormat):
			continue
		case err != nil:
			return err
		}
		if rec, ok := show(names[i], a); ok && (l.p.State == 0 || rec.State == l.p.State) {
			l.records = append(l.records, rec)
		}
	}
	return nil
}

// next is the cursor of the next page; empty if there is none.
func (l *listing) next() string {
	if len(l.at.Keys) == 0 && l.at.Done >= len(l.masters) {
		return ""
	}
	for i, k := range l.at.Keys {
		l.at.Keys[i] = base64.StdEncoding.EncodeToString([]byte(k))
	}
	b, _ := json.Marshal(l.at) //nolint:errchkjson // numbers and strings of ASCII
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseCursor(s string) (at cursor, err error) {
	if s == "" {
		return cursor{}, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(b, &at)
	}
	for i, k := range at.Keys {
		if err != nil {
			break
		}
		b, err = base64.StdEncoding.DecodeString(k)
		at.Keys[i] = string(b)
	}
	if err != nil || at.Done < 0 {
		return cursor{}, invalid("After is no cursor of this store")
	}
	return at, nil
}

// glob matches s itself in a pattern of the server.
func glob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}

// parseKey undoes [driver.Key.String].
func parseKey(s string) (driver.Key, bool) {
	length, rest, ok := strings.Cut(s, ":")
	n, err := strconv.Atoi(length)
	if !ok || err != nil || n < 1 || n >= len(rest)-1 || rest[n] != ':' || strconv.Itoa(n) != length {
		return driver.Key{}, false
	}
	return driver.Key{Scope: rest[:n], ID: rest[n+1:]}, true
}
