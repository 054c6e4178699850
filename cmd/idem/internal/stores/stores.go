// Package stores opens stores by URL.
package stores

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"
	"github.com/redis/rueidis"
	_ "modernc.org/sqlite"

	"github.com/idem-go/idem/driver"
	idemredis "github.com/idem-go/idem/drivers/redis"
	idemsql "github.com/idem-go/idem/drivers/sql"
)

// Forms are the URLs that [Open] takes, for messages.
const Forms = "sqlite:PATH, postgres://USER@HOST/DB, mysql://USER@HOST/DB or redis://HOST"

// Store is an opened store.
type Store struct {
	driver.Driver

	close func()
}

// Unwrap lets [driver.As] find the driver's abilities.
func (s *Store) Unwrap() driver.Driver { return s.Driver }

// Close ends the connections.
func (s *Store) Close() { s.close() }

// Open opens the store at a URL (see [Forms]) and brings its schema up to
// date. Errors do not tell the password.
func Open(ctx context.Context, address string) (*Store, error) {
	scheme, rest, _ := strings.Cut(address, ":")
	switch scheme {
	case "sqlite":
		path := strings.TrimPrefix(rest, "//")
		if path == "" {
			return nil, errors.New("the store sqlite: names no file: write sqlite:idem.db")
		}
		return openSQL(ctx, "sqlite", idemsql.SQLiteDSN(path))
	case "postgres", "postgresql":
		return openSQL(ctx, "postgres", address)
	case "mysql":
		dsn, err := mysqlDSN(address)
		if err != nil {
			return nil, err
		}
		return openSQL(ctx, "mysql", dsn)
	case "redis", "rediss":
		return openRedis(address)
	}
	return nil, fmt.Errorf("the store %q is of no known kind: write %s", scheme, Forms)
}

func openSQL(ctx context.Context, name, dsn string) (*Store, error) {
	db, err := sqlx.Open(name, dsn)
	if err != nil {
		return nil, fmt.Errorf("the store's address cannot be read (%s): write %s", name, Forms)
	}
	s, err := idemsql.New(db)
	if err == nil {
		err = s.Migrate(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Store{s, func() { _ = db.Close() }}, nil
}

// mysqlDSN turns a URL into what the Go driver wants. Parameters go through.
func mysqlDSN(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || len(u.Path) < 2 {
		return "", errors.New("the store's address cannot be read: write mysql://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	c := mysql.NewConfig()
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	c.Net, c.Addr, c.DBName = "tcp", u.Host, u.Path[1:]
	if u.Port() == "" {
		c.Addr = u.Host + ":3306"
	}
	dsn := c.FormatDSN()
	if u.RawQuery == "" {
		return dsn, nil
	}
	if c, err = mysql.ParseDSN(dsn + "?" + u.RawQuery); err != nil {
		return "", errors.New("the parameters of the store's address cannot be read: they are those of go-sql-driver/mysql")
	}
	return c.FormatDSN(), nil
}

func openRedis(address string) (*Store, error) {
	o, err := rueidis.ParseURL(address)
	if err != nil {
		return nil, errors.New("the store's address cannot be read: write redis://USER:PASSWORD@HOST:PORT/NUMBER")
	}
	client, err := rueidis.NewClient(o)
	if err != nil {
		return nil, fmt.Errorf("the store cannot be reached: %w", err)
	}
	s, err := idemredis.New(client)
	if err != nil {
		client.Close()
		return nil, err
	}
	return &Store{s, client.Close}, nil
}
