// Package idemsql keeps idempotency records in a SQL database.
//
// A [Store] is built on a pool that its user opened and that stays the user's:
//
//	db := sqlx.MustOpen("sqlite", idemsql.SQLiteDSN("orders.db"))
//	store, err := idemsql.New(db)
//	...
//	err = store.Migrate(ctx)
//
// It upholds all three guarantees. Under ExactlyOnce, the claim, the effect and
// the outcome commit in one transaction, which the operation's function finds
// in its context: see [Tx], [InTx] and [Join].
//
// The package imports no database driver. It speaks PostgreSQL (13 or later,
// through lib/pq or pgx's database/sql driver), MySQL (8.0 or later) and MariaDB
// (10.6 or later, both through go-sql-driver/mysql) and SQLite (3.42 or later,
// through modernc.org/sqlite). The dialect is found by the pool's driver, and
// MariaDB by its version: see [WithDialect]. Call [Store.Verify] at start-up: it
// finds settings that the guarantees in use cannot live with.
//
// # Servers
//
// The claim of an ExactlyOnce operation tries for a lock of its key and never
// waits in the server, whatever the isolation level. What has to be known:
//
//   - Inside [Join], MySQL and MariaDB have a duplicate wait for the row, up to
//     innodb_lock_wait_timeout.
//   - DDL inside a function commits what came before it on MySQL and MariaDB.
//   - A pooler in transaction mode needs [WithoutPreparedStatements], and a DSN
//     that says likewise to the driver.
//   - A result is no larger than the max_allowed_packet of MySQL and MariaDB.
//   - A function that holds every connection of the pool keeps leases from
//     being renewed: see [WithHeartbeatPool].
//   - A client that vanishes without a word holds its key until the server
//     notices: see [WithIdleLimit] for PostgreSQL, and wait_timeout on MySQL.
//
// docs/sql.md has the settings, privileges and costs of each.
//
// # SQLite
//
// One transaction at a time writes to a file. The writers of one Store queue up
// in the process, in the order of their arrival; against other writers the
// Store tries again, with jitter, until the context ends or [BusyWait] is over,
// and then returns driver.ErrBusy: "database is locked" is not an error that a
// user of this package meets. SQLite has no queue for its lock, so a process
// that writes without a pause may keep another one out for that long. What
// follows from it:
//
//   - An ExactlyOnce run keeps every other claim, renewal and completion on the
//     file waiting. It must be shorter than any lease there.
//   - A lease inside an ExactlyOnce run on the same database would wait for
//     itself. It is refused at once (driver.ErrNested).
//   - A key whose ExactlyOnce run is under way in another process cannot be
//     seen. Its duplicates get driver.ErrBusy, not "in progress"; within one
//     Store they get the latter. Use one Store for a table in a process.
//   - A statement that SQLite interrupts inside a transaction (its context was
//     cancelled), or that finds the disk full, may roll the whole transaction
//     back on its own, and statements after it would then take effect by
//     themselves. A function must return such an error; if it does not, the
//     run fails at its completion, and only what came after that statement stays.
//
// See https://www.sqlite.org/lang_transaction.html.
package idemsql
