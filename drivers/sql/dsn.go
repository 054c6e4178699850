package idemsql

import (
	"crypto/rand"
	"net/url"
	"path/filepath"
	"strings"
)

// SQLiteDSN returns the data source name of a database file for
// modernc.org/sqlite, with the settings that a [Store] wants on every
// connection: a write-ahead log, which lets readers go on while somebody
// writes; synchronous=FULL, without which a power failure could undo an
// acknowledged commit; a busy timeout of 5 s; and transactions that take the
// write lock when they begin, since one that takes it later fails where another
// writer came between. Foreign keys and everything else stay as they are.
//
// path is a path, not a URI; every character in it stands for itself. The
// exception is ":memory:", which names a new database in memory for each call,
// shared by the connections of a pool and gone with the last of them. Readers
// and writers wait for each other there, and [Store.Verify] refuses it for
// AtMostOnce; it is for tests.
func SQLiteDSN(path string) string {
	const settings = "_pragma=busy_timeout(5000)&_txlock=immediate"
	if path == ":memory:" {
		return "file:/" + rand.Text() + "?vfs=memdb&" + settings
	}
	path = filepath.ToSlash(path)
	if filepath.VolumeName(path) != "" {
		path = "/" + path // https://www.sqlite.org/uri.html: file:///C:/…
	}
	prefix := "file:"
	if strings.HasPrefix(path, "/") {
		prefix = "file://" // else two slashes at the beginning would name a host
	}
	escaped := strings.ReplaceAll(url.PathEscape(path), "%2F", "/")
	return prefix + escaped + "?" + settings + "&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
}
