package idemsql

import (
	"encoding/hex"
	"time"

	"github.com/idem-go/idem/driver"
)

// mysql speaks MySQL 8.0 or later, and what is common to its family: MySQL
// 5.7, MariaDB.
//
// It has no RETURNING: a write answers its number by LAST_INSERT_ID(expr), which
// comes back with the statement's own reply and is 0 if no row was met
// (https://dev.mysql.com/doc/refman/8.4/en/information-functions.html#function_last-insert-id).
//
// Its clock is UTC_TIMESTAMP, which stands still within a statement, and what
// SYSDATE has gone on since: the statement may have waited for a lock. In an
// UPDATE the assignments are made from left to right, so what is set first can be used behind.
//
// A duplicate (ON DUPLICATE KEY UPDATE that changes nothing) writes no redo and
// no binary log.
//
// In a transaction the key is locked by GET_LOCK with no time to wait, on the
// transaction's connection; the write that completes gives it up, or else
// stUnlock does. A row lock is never waited for: whoever holds one holds
// this lock too, but for the moment between completing and committing.
var mysql = dialect{
	name:  "mysql",
	title: "MySQL",

	now:   mysqlNow,
	began: mysqlStart,
	head: `CONCAT_WS(' ', format, state, guarantee, on_lapse, fence, generation, attempt, took_over, claimed_at,
	COALESCE(lease_end, ''), COALESCE(ended_at, ''), COALESCE(retention, ''), COALESCE(tombstone, ''), ` + mysqlNow + `)`,
	unit:       time.Microsecond,
	maxOutcome: 1<<32 - 1, // LONGBLOB; max_allowed_packet is less
	stamps:     true,
	leases:     Auto,
	duplicates: 50,
	lock:       lockName,
	facts:      `SELECT VERSION(), @@max_allowed_packet`,

	// A subquery of two rows is an error: the other migration takes too long.
	migrateBegin: []string{`DO IF(GET_LOCK(` + mysqlMigrateLock + `, 60) = 1, 1, (SELECT 1 UNION SELECT 2))`},
	migrateEnd:   []string{mysqlMigrateEnd},
	migrateUndo:  []string{mysqlMigrateEnd},
	versioned: `SELECT count(*) FROM information_schema.tables
	WHERE table_schema = DATABASE() AND table_name = '{table}_version'`,

	schema:   "mysql",
	drivers:  mysqlDrivers,
	code:     mysqlCode,
	kind:     mysqlKind,
	settings: mysqlSettings,

	templates: mysqlTemplates,
}

// mariadb speaks MariaDB 10.6 or later. Its INSERT answers rows, so that a
// lease is claimed or answered in one round trip; a server that turns out to be
// one is spoken to likewise.
var mariadb = func() dialect {
	d := mysql
	d.name, d.title = "mariadb", "MariaDB"
	d.drivers = nil // the driver is MySQL's: the user says that the server is not
	return d
}()

var mysqlDrivers = []string{"github.com/go-sql-driver/mysql"}

// The parts that statements of MySQL share.
const (
	mysqlStart = `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))`
	// Both of the latter are local times: where the session's zone has summer
	// time, one may stand on either side of its beginning or end. Zones move by
	// whole half hours, and no statement waits for as long.
	mysqlNow = `(` + mysqlStart + ` + MOD(GREATEST(TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)), 0), 1800000000))`

	// mysqlLock is at most 64 characters long, and named after the database,
	// since locks are the server's.
	mysqlLock        = `CONCAT('idem:', LEFT(SHA2(CONCAT(DATABASE(), :lock), 256), 56))`
	mysqlRelease     = `0 * COALESCE(RELEASE_LOCK(` + mysqlLock + `), 0)`
	mysqlMigrateLock = `CONCAT('idem:', LEFT(SHA2(CONCAT(DATABASE(), '.{table}'), 256), 56))`
	mysqlMigrateEnd  = `DO RELEASE_LOCK(` + mysqlMigrateLock + `)`

	mysqlInserted = `scope, id, format, state, guarantee, on_lapse, token, fence, generation, attempt, took_over,
	fingerprint, claimed_at, lease_end, retention, tombstone, purge_at`
	mysqlValues = `:scope, :id, :format, 1, :guarantee, :on_lapse, :token, LAST_INSERT_ID(c.n), c.n, 1, 0,
	:fingerprint, c.n, c.n + :lease, :retention, :tombstone, c.n + :lease + :keep`

	// mysqlSeen holds for the record that was read.
	mysqlSeen = `scope = :scope AND id = :id AND fence = :fence AND state = :state AND COALESCE(lease_end, ended_at) = :base
	AND {now} > :from AND {now} <= :until`

	// mysqlListed holds for the records of a batch.
	mysqlListed = `t.scope = UNHEX(b.scope) AND t.id = UNHEX(b.id)`
	mysqlKeys   = `JSON_TABLE(:batch, '$[*]' COLUMNS (scope VARCHAR(512) PATH '$.scope', id VARCHAR(512) PATH '$.id')) AS b`
	mysqlBatch  = `JSON_TABLE(:batch, '$[*]' COLUMNS (scope VARCHAR(512) PATH '$.scope', id VARCHAR(512) PATH '$.id',
	token VARCHAR(32) PATH '$.token', format INT PATH '$.format', guarantee INT PATH '$.guarantee', on_lapse INT PATH '$.on_lapse',
	fingerprint VARCHAR(512) PATH '$.fingerprint', lease BIGINT PATH '$.lease', retention BIGINT PATH '$.retention',
	tombstone BIGINT PATH '$.tombstone', keep BIGINT PATH '$.keep', to_state INT PATH '$.to', outcome LONGTEXT PATH '$.outcome')) AS b`

	mysqlTake = `
UPDATE {table} SET claimed_at = LAST_INSERT_ID({now}), lease_end = claimed_at + :lease, ended_at = NULL,
	format = :format, state = 1, guarantee = :guarantee, on_lapse = :on_lapse, token = :token,
	fence = GREATEST(fence + 1, claimed_at), generation = IF(:fresh = 1, fence, generation),
	attempt = IF(:fresh = 1, 1, attempt + 1), took_over = :took_over, fingerprint = :fingerprint,
	retention = :retention, tombstone = :tombstone, purge_at = lease_end + :keep, outcome = NULL
WHERE ` + mysqlSeen

	mysqlComplete = `
UPDATE {table} SET ended_at = LAST_INSERT_ID({now}),
	purge_at = IF(purge_at - ended_at - :keep BETWEEN 0 AND :keep DIV 8, purge_at, ended_at + :keep),
	state = :to, format = :format, outcome = :outcome, lease_end = NULL, retention = :retention, tombstone = :tombstone`
	mysqlOwned = `
WHERE scope = :scope AND id = :id AND state = 1 AND token = :token`
)

var mysqlTemplates = [statementCount]string{
	stRead: `
SELECT {seen} FROM {table} WHERE scope = :scope AND id = :id`,

	// An older snapshot of the transaction would not show what an insert has met.
	stReadLatest: `
SELECT {record} FROM {table} WHERE scope = :scope AND id = :id LOCK IN SHARE MODE`,

	stClaim: `
INSERT INTO {table} (` + mysqlInserted + `) SELECT ` + mysqlValues + ` FROM (SELECT {now} AS n) AS c
ON DUPLICATE KEY UPDATE fence = {table}.fence + LAST_INSERT_ID(0)`,

	stClaimTells: `
INSERT INTO {table} (` + mysqlInserted + `)
VALUES (:scope, :id, :format, 1, :guarantee, :on_lapse, :token, ` + mysqlStart + `, ` + mysqlStart + `, 1, 0,
	:fingerprint, ` + mysqlStart + `, ` + mysqlStart + ` + :lease, :retention, :tombstone, ` + mysqlStart + ` + :lease + :keep)
ON DUPLICATE KEY UPDATE fence = {table}.fence
RETURNING IF(claimed_at = ` + mysqlStart + ` AND token = :token, claimed_at, 0), {record}`,

	// 1 stands for a key that another transaction has locked. In the SELECT
	// list GET_LOCK would be evaluated twice, and would have to be given up twice.
	// A record that answers the claim gives the lock up again; one that may be
	// taken keeps it, or claims in a row would take it from each other for ever.
	stLockClaim: `
INSERT INTO {table} (` + mysqlInserted + `) SELECT ` + mysqlValues + `
FROM (SELECT {now} AS n) AS c WHERE GET_LOCK(` + mysqlLock + `, 0) = 1 OR LAST_INSERT_ID(1) = 0
ON DUPLICATE KEY UPDATE fence = {table}.fence + LAST_INSERT_ID(
	IF({table}.state IN (2, 3) AND COALESCE({table}.purge_at >= ` + mysqlStart + `, TRUE), ` + mysqlRelease + `, 0))`,

	stTake: mysqlTake,

	stLockTake: mysqlTake + ` AND (GET_LOCK(` + mysqlLock + `, 0) = 1 OR LAST_INSERT_ID(1) = 0)`,

	stUnlock: `SELECT COALESCE(RELEASE_LOCK(` + mysqlLock + `), 0)`,

	stComplete: mysqlComplete + mysqlOwned + ` AND format <= :format`,

	stUnlockComplete: mysqlComplete + `, attempt = attempt + ` + mysqlRelease + mysqlOwned + ` AND format <= :format`,

	stRelease: `
UPDATE {table} SET ended_at = LAST_INSERT_ID({now}), purge_at = ended_at + :keep,
	state = 5, fingerprint = NULL, lease_end = NULL, retention = :retention, tombstone = 0` + mysqlOwned,

	stRenew: `
UPDATE {table} SET lease_end = GREATEST(lease_end, {now} + :lease),
	purge_at = purge_at + GREATEST(0, lease_end + GREATEST(retention + tombstone, {memory}) - purge_at),
	attempt = attempt + 0 * LAST_INSERT_ID(GREATEST(lease_end - {now}, 1))` + mysqlOwned + ` AND lease_end IS NOT NULL`,

	stClaimBatch: `
INSERT INTO {table} (` + mysqlInserted + `)
SELECT UNHEX(b.scope), UNHEX(b.id), b.format, 1, b.guarantee, b.on_lapse, UNHEX(b.token), LAST_INSERT_ID(c.n), c.n, 1, 0,
	UNHEX(b.fingerprint), c.n, c.n + b.lease, b.retention, b.tombstone, c.n + b.lease + b.keep
FROM (SELECT {now} AS n) AS c, ` + mysqlBatch + `
ON DUPLICATE KEY UPDATE fence = {table}.fence`,

	// The assignments of an UPDATE of several tables may be made in any order,
	// so none needs another's:
	// https://dev.mysql.com/doc/refman/8.4/en/update.html
	stCompleteBatch: `
UPDATE (SELECT {now} AS n) AS c, ` + mysqlBatch + ` STRAIGHT_JOIN {table} AS t ON ` + mysqlListed + `
SET t.ended_at = LAST_INSERT_ID(c.n), t.purge_at = IF(t.purge_at - c.n - b.keep BETWEEN 0 AND b.keep DIV 8, t.purge_at, c.n + b.keep),
	t.state = b.to_state, t.format = b.format, t.outcome = UNHEX(b.outcome), t.lease_end = NULL,
	t.retention = b.retention, t.tombstone = b.tombstone
WHERE t.state = 1 AND t.token = UNHEX(b.token) AND t.format <= b.format`,

	stRenewBatch: `
UPDATE (SELECT {now} AS n) AS c, ` + mysqlBatch + ` STRAIGHT_JOIN {table} AS t ON ` + mysqlListed + `
SET t.lease_end = GREATEST(t.lease_end, c.n + b.lease), t.purge_at = t.purge_at
	+ GREATEST(0, GREATEST(t.lease_end, c.n + b.lease) + GREATEST(t.retention + t.tombstone, {memory}) - t.purge_at)
WHERE t.state = 1 AND t.token = UNHEX(b.token) AND t.lease_end IS NOT NULL`,

	stReadBatch: `
SELECT t.scope, t.id, {seen} FROM ` + mysqlKeys + ` STRAIGHT_JOIN {table} AS t ON ` + mysqlListed,

	stSettle: `
UPDATE {table} SET ended_at = LAST_INSERT_ID({now}), purge_at = ended_at + :keep,
	fingerprint = IF(:to = 5, NULL, fingerprint), format = :format, token = :token, outcome = :outcome,
	retention = :retention, tombstone = :tombstone, state = :to, lease_end = NULL
WHERE ` + mysqlSeen,

	// The statement's start may be compared in the index, SYSDATE may not.
	stPurge: `
DELETE FROM {table} WHERE purge_at < ` + mysqlStart + ` ORDER BY purge_at LIMIT :limit`,

	// Without SKIP LOCKED it would wait for every transaction that has taken a
	// record over. The derived table comes first, or the table is read through.
	stPurgeFree: `
DELETE t FROM (SELECT scope, id FROM {table} WHERE purge_at < ` + mysqlStart + `
	ORDER BY purge_at LIMIT :limit FOR UPDATE SKIP LOCKED) AS d
STRAIGHT_JOIN {table} AS t ON t.scope = d.scope AND t.id = d.id`,

	stList: `
SELECT scope, id, {seen} FROM {table} WHERE scope > :scope OR scope = :scope AND id > :id
ORDER BY scope, id LIMIT :limit`,

	stListScope: `
SELECT scope, id, {seen} FROM {table} WHERE scope = :scope AND id > :id ORDER BY id LIMIT :limit`,
}

// lockName is the part of a lock's name that the table and the key give.
func lockName(table string, k driver.Key) any {
	sum := lockSum(table, k)
	return hex.EncodeToString(sum[:])
}

// mysqlKind maps error numbers
// (https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html).
func mysqlKind(f failure) kind { return mysqlKinds[f.code] }

var mysqlKinds = func() map[int]kind {
	all := map[int]kind{}
	for k, codes := range map[kind][]int{
		kindLocked:     {1205, 1213, 3572, 1020},                   // lock wait timeout, deadlock, NOWAIT, snapshot isolation
		kindFull:       {1021, 1037, 1038, 1040, 1041, 1114, 1203}, // disk, memory, connections, table
		kindTooLarge:   {1153, 1301, packetTooLarge},               // max_allowed_packet
		kindConstraint: {1048, 1062, 1264, 1292, 1366, 1406, 1451, 1452, 1690, 3819, 4025},
		kindPassing: {
			1030, 1180, 1290, 1317, 1792, 1836, 1969, 3024,
		},
		kindLost: {
			1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1927, 2006, 2013, 3169, 4031,
			connectionLost,
		},
		kindWrong: {1044, 1045, 1049, 1054, 1064, 1142, 1143, 1146, 1227},
	} {
		for _, code := range codes {
			all[code] = k
		}
	}
	return all
}()
