package idemsql_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/idem-go/idem/conformance/faults"
	idemsql "github.com/idem-go/idem/drivers/sql"
)

var mysqlAddress = regexp.MustCompile(`tcp\(([^)]*)\)`)

// addressed returns the address in a DSN, and the DSN with another one.
func addressed(t testing.TB, dsn string) (addr string, with func(string) string) {
	t.Helper()
	if m := mysqlAddress.FindStringSubmatch(dsn); m != nil {
		return m[1], func(other string) string { return strings.Replace(dsn, m[0], "tcp("+other+")", 1) }
	}
	u, err := url.Parse(dsn)
	must(t, err)
	return u.Host, func(other string) string {
		v := *u
		v.Host = other
		return v.String()
	}
}

// through opens another handle on the bundle's table, through a proxy and with one connection.
func (s server) through(t testing.TB, b *bundle, opts ...idemsql.Option) (*bundle, *faults.Proxy) {
	t.Helper()
	addr, with := addressed(t, b.path)
	p, err := faults.NewProxy(addr)
	must(t, err)
	t.Cleanup(func() { _ = p.Close() })
	db, err := sqlx.Open(s.driver, with(p.Addr()))
	must(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	opts = append(append([]idemsql.Option{idemsql.WithSweep(0), idemsql.WithTable(b.table)}, s.opts...), opts...)
	store, err := idemsql.New(db, opts...)
	must(t, err)
	return &bundle{Store: store, t: t, db: db, path: b.path, table: b.table}, p
}
