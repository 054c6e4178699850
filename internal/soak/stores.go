package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // database/sql driver pgx
	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // database/sql driver postgres
	"github.com/redis/rueidis"
	_ "modernc.org/sqlite" // database/sql driver sqlite

	"github.com/idem-go/idem/conformance/faults"
	"github.com/idem-go/idem/driver"
	idemmemory "github.com/idem-go/idem/drivers/memory"
	idemredis "github.com/idem-go/idem/drivers/redis"
	idemsql "github.com/idem-go/idem/drivers/sql"
)

// backend is one store with several handles.
type backend struct {
	name    string
	handles []driver.Driver // what the faults happen to
	clean   driver.Driver   // for audits: no faults, no proxy
	proxy   *faults.Proxy   // between the handles and the server; nil: none
	inbox   *inbox          // nil: no ExactlyOnce
	closers []func() error

	// masters says which servers have the records now. After a failover others
	// do, which may not have all that was acknowledged: the driver promises no
	// more than the servers keep. Nil: there is none.
	masters func(ctx context.Context) string
}

// inbox counts the effects of ExactlyOnce runs, in the store's own database.
type inbox struct {
	db    *sqlx.DB
	table string
}

func (i *inbox) effect(ctx context.Context, key string) error {
	tx, ok := idemsql.Tx(ctx)
	if !ok {
		return errors.New("soak: the context carries no transaction")
	}
	_, err := tx.ExecContext(ctx, tx.Rebind("INSERT INTO "+i.table+" (id) VALUES (?)"), key)
	return err
}

// effects counts the committed effects of every key of an epoch.
func (i *inbox) effects(ctx context.Context, epoch string) (map[string]int, error) {
	var ids []string
	err := i.db.SelectContext(ctx, &ids, i.db.Rebind("SELECT id FROM "+i.table+" WHERE id LIKE ?"), epoch+"%")
	counts := make(map[string]int)
	for _, id := range ids {
		counts[id]++
	}
	return counts, err
}

// close ends what was opened, and lets go of what it held in memory.
func (b *backend) close() error {
	b.handles, b.clean = nil, nil
	var errs []error
	for _, f := range slices.Backward(b.closers) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// handleCount is how many handles a store has, as so many processes would.
const handleCount = 3

// backends opens every store that there is.
func backends(ctx context.Context) (list []*backend, err error) {
	for _, open := range []func(context.Context) (*backend, error){
		openMemory, openSQLite, openPostgres, openMySQL("MySQL", "IDEM_TEST_MYSQL"), openMySQL("MariaDB", "IDEM_TEST_MARIADB"),
		openRedis, openRedisGroup("Redis Cluster", "IDEM_TEST_REDIS_CLUSTER"), openRedisGroup("Redis Sentinel", "IDEM_TEST_REDIS_SENTINEL"),
	} {
		b, err := open(ctx)
		if err != nil {
			for _, b := range list {
				err = errors.Join(err, b.close())
			}
			return nil, err
		}
		if b != nil {
			list = append(list, b)
		}
	}
	return list, nil
}

func openMemory(context.Context) (*backend, error) {
	s, err := idemmemory.New(idemmemory.WithMaxRecords(1 << 20))
	if err != nil {
		return nil, err
	}
	return &backend{name: "memory", handles: []driver.Driver{s, s, s}, clean: s}, nil
}

func openSQLite(ctx context.Context) (*backend, error) {
	folder, err := os.MkdirTemp("", "idem-soak-")
	if err != nil {
		return nil, err
	}
	dsn := idemsql.SQLiteDSN(filepath.Join(folder, "soak.db"))
	b := &backend{name: "SQLite", closers: []func() error{func() error { return os.RemoveAll(folder) }}}
	return b, b.openSQL(ctx, dsn, "sqlite", dsn, "sqlite", "sqlite", "sqlite")
}

func openPostgres(ctx context.Context) (*backend, error) {
	dsn := os.Getenv("IDEM_TEST_POSTGRES")
	u, err := url.Parse(dsn)
	if dsn == "" || err != nil {
		return nil, err
	}
	b := &backend{name: "PostgreSQL"}
	if err := b.openProxy(u.Host); err != nil {
		return nil, err
	}
	u.Host = b.proxy.Addr()
	return b, b.openSQL(ctx, dsn, "postgres", u.String(), "postgres", "pgx", "postgres")
}

func openMySQL(name, variable string) func(context.Context) (*backend, error) {
	return func(ctx context.Context) (*backend, error) {
		dsn := os.Getenv(variable)
		if dsn == "" {
			return nil, nil
		}
		c, err := mysql.ParseDSN(dsn)
		if err != nil {
			return nil, err
		}
		c.Logger = &mysql.NopLogger{}
		b := &backend{name: name}
		if err := b.openProxy(c.Addr); err != nil {
			return nil, err
		}
		c.Addr = b.proxy.Addr()
		_ = mysql.SetLogger(&mysql.NopLogger{}) // cut connections are what is meant to happen
		return b, b.openSQL(ctx, dsn, "mysql", c.FormatDSN(), "mysql", "mysql", "mysql")
	}
}

func (b *backend) openProxy(target string) (err error) {
	b.proxy, err = faults.NewProxy(target)
	if err == nil {
		b.closers = append(b.closers, b.proxy.Close)
	}
	return err
}

// openSQL opens the handles through the given drivers, with tables of their own.
func (b *backend) openSQL(ctx context.Context, dsn, direct, proxied string, through ...string) error {
	table := "idem_soak_" + strings.ToLower(rand.Text()[:10])
	open := func(name, dsn string) (*sqlx.DB, *idemsql.Store, error) {
		db, err := sqlx.Open(name, dsn)
		if err != nil {
			return nil, nil, err
		}
		db.SetMaxOpenConns(10)
		b.closers = append(b.closers, func() error { _ = db.Close(); return nil }) // cut connections do not close well
		store, err := idemsql.New(db, idemsql.WithTable(table))
		return db, store, err
	}
	db, clean, err := open(direct, dsn)
	if err != nil {
		return err
	}
	if err := clean.Migrate(ctx); err != nil {
		return err
	}
	b.clean, b.inbox = clean, &inbox{db: db, table: table + "_effects"}
	if _, err := db.ExecContext(ctx, "CREATE TABLE "+b.inbox.table+" (id VARCHAR(200) NOT NULL)"); err != nil {
		return err
	}
	b.closers = append(b.closers, func() error {
		var err error
		for _, suffix := range []string{"", "_version", "_effects"} {
			_, failed := db.ExecContext(context.Background(), "DROP TABLE "+table+suffix)
			err = errors.Join(err, failed)
		}
		return err
	})
	for _, name := range through {
		_, store, err := open(name, proxied)
		if err != nil {
			return err
		}
		b.handles = append(b.handles, store)
	}
	return nil
}

func openRedis(context.Context) (*backend, error) {
	address := os.Getenv("IDEM_TEST_REDIS")
	if address == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	if !strings.Contains(address, "://") {
		address = "redis://" + address
	}
	o, err := rueidis.ParseURL(address)
	if err != nil {
		return nil, err
	}
	b := &backend{name: "Redis"}
	if err := b.openProxy(o.InitAddress[0]); err != nil {
		return nil, err
	}
	proxied := o
	proxied.InitAddress = []string{b.proxy.Addr()}
	return b, b.openClients(o, proxied)
}

// openRedisGroup opens several servers. Their clients find them by the
// addresses that the servers tell, so there is no proxy.
func openRedisGroup(name, variable string) func(context.Context) (*backend, error) {
	return func(context.Context) (*backend, error) {
		addresses := os.Getenv(variable)
		if addresses == "" {
			return nil, nil
		}
		o := rueidis.ClientOption{InitAddress: strings.Split(addresses, ",")}
		if strings.Contains(name, "Sentinel") {
			o.Sentinel.MasterSet = "idem"
		}
		b := &backend{name: name}
		c, err := rueidis.NewClient(o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		b.closers = append(b.closers, func() error { c.Close(); return nil })
		b.masters = func(ctx context.Context) string { return masters(ctx, c) }
		return b, b.openClients(o, o)
	}
}

// masters are the replication histories of all masters, each of which ends with a failover.
func masters(ctx context.Context, c rueidis.Client) string {
	var all []string
	for _, node := range c.Nodes() {
		info, err := node.Do(ctx, node.B().Info().Section("replication").Build()).ToString()
		if err != nil || !strings.Contains(info, "role:master") {
			continue
		}
		_, id, _ := strings.Cut(info, "master_replid:")
		id, _, _ = strings.Cut(id, "\r\n")
		all = append(all, id)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func (b *backend) openClients(direct, proxied rueidis.ClientOption) error {
	prefix := "soak-" + strings.ToLower(rand.Text()[:10]) + ":"
	open := func(o rueidis.ClientOption) (driver.Driver, error) {
		c, err := rueidis.NewClient(o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.name, err)
		}
		b.closers = append(b.closers, func() error { c.Close(); return nil })
		return idemredis.New(c, idemredis.WithPrefix(prefix))
	}
	var err error
	if b.clean, err = open(direct); err != nil {
		return err
	}
	for range handleCount {
		d, err := open(proxied)
		if err != nil {
			return err
		}
		b.handles = append(b.handles, d)
	}
	return nil
}
