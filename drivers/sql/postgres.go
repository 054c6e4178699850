package idemsql

import "time"

// postgres speaks PostgreSQL 13 or later.
//
// Its clock is clock_timestamp(), in µs: now() is the transaction's start. Each
// statement reads it once, in a materialized part c, so that all its times agree; one that
// may wait for another row's lock reads it after it has the lock.
//
// A duplicate changes nothing: INSERT … ON CONFLICT DO NOTHING on a key that
// has a record takes no transaction ID, writes no WAL and locks no row
// (https://www.postgresql.org/docs/current/sql-insert.html#SQL-ON-CONFLICT).
//
// In a transaction the key is locked by pg_try_advisory_xact_lock, which never
// waits, and which the transaction's end gives up
// (https://www.postgresql.org/docs/current/explicit-locking.html#ADVISORY-LOCKS).
var postgres = dialect{
	name:  "postgres",
	title: "PostgreSQL",

	now:   postgresNow,
	began: postgresStart,
	head: `concat(format, ' ', state, ' ', guarantee, ' ', on_lapse, ' ', fence, ' ', generation, ' ', attempt, ' ', CAST(took_over AS int),
	' ', claimed_at, ' ', lease_end, ' ', ended_at, ' ', retention, ' ', tombstone, ' ', ` + postgresNow + `)`,
	unit:       time.Microsecond,
	numbered:   "$",
	maxOutcome: 1<<30 - 1<<20, // a field has at most 1 GB: https://www.postgresql.org/docs/current/limits.html
	leases:     Auto,
	duplicates: 50,
	lock:       lockNumber,
	lockLasts:  true,

	migrateBegin: []string{`BEGIN`, `SELECT pg_advisory_xact_lock(hashtext('idem migrate {table}'))`},
	migrateEnd:   []string{`COMMIT`},
	migrateUndo:  []string{`ROLLBACK`},
	versioned:    `SELECT count(*) FROM pg_class WHERE oid = to_regclass('{table}_version')`,

	drivers:  []string{"github.com/lib/pq", "github.com/jackc/pgx"},
	code:     stateCode,
	kind:     postgresKind,
	settings: postgresSettings,

	templates: [statementCount]string{
		stRead: `
SELECT {seen} FROM {table} WHERE scope = :scope AND id = :id`,

		stClaim: `
INSERT INTO {table} (` + postgresInserted + `) SELECT ` + postgresValues + ` FROM (SELECT {now} AS n OFFSET 0) AS c
ON CONFLICT (scope, id) DO NOTHING RETURNING claimed_at`,

		stClaimTells: `
WITH i AS (
	INSERT INTO {table} (` + postgresInserted + `) SELECT ` + postgresValues + ` FROM (SELECT {now} AS n OFFSET 0) AS c
	ON CONFLICT (scope, id) DO NOTHING RETURNING claimed_at)
SELECT claimed_at, ` + postgresNothing + ` FROM i
UNION ALL
SELECT 0, {seen} FROM {table} WHERE scope = :scope AND id = :id AND NOT EXISTS (SELECT FROM i)`,

		stLockClaim: `
INSERT INTO {table} (` + postgresInserted + `) SELECT ` + postgresValues + ` FROM (
	SELECT {now} AS n FROM (SELECT pg_try_advisory_xact_lock(:lock) AS got, ` + postgresIdle + ` OFFSET 0) AS l WHERE got OFFSET 0) AS c
ON CONFLICT (scope, id) DO NOTHING RETURNING claimed_at`,

		stLockTells: `
WITH l AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(:lock) AS got)
SELECT 1, ` + postgresNothing + ` FROM l WHERE NOT got
UNION ALL
SELECT 0, {seen} FROM {table}, l WHERE got AND scope = :scope AND id = :id`,

		stTake: `
WITH l AS MATERIALIZED (SELECT scope, id FROM {table} WHERE ` + postgresSeen + ` FOR UPDATE),
c AS MATERIALIZED (SELECT {now} AS n, l.* FROM l)
UPDATE {table} AS t SET ` + postgresTaken + `
FROM c WHERE t.scope = c.scope AND t.id = c.id AND c.n > :from AND c.n <= :until
RETURNING claimed_at`,

		stLockTake: `
WITH l AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(:lock) AS got, ` + postgresIdle + `), c AS MATERIALIZED (SELECT {now} AS n FROM l), u AS (
	UPDATE {table} AS t SET ` + postgresTaken + `
	FROM c, l WHERE l.got AND ` + postgresSeen + ` AND c.n > :from AND c.n <= :until
	RETURNING claimed_at)
SELECT claimed_at FROM u
UNION ALL
SELECT 1 FROM l WHERE NOT got`,

		stComplete:       postgresComplete,
		stUnlockComplete: postgresComplete,

		stRelease: `
UPDATE {table} SET state = 5, fingerprint = NULL, lease_end = NULL, ended_at = {now},
	retention = :retention, tombstone = 0, purge_at = {now} + :keep
WHERE scope = :scope AND id = :id AND state = 1 AND token = :token
RETURNING ended_at`,

		stRenew: `
UPDATE {table} SET lease_end = greatest(lease_end, {now} + :lease), purge_at = purge_at
	+ greatest(0, greatest(lease_end, {now} + :lease) + greatest(retention + tombstone, {memory}) - purge_at)
WHERE scope = :scope AND id = :id AND state = 1 AND token = :token AND lease_end IS NOT NULL
RETURNING lease_end - {now}`,

		stSettle: `
UPDATE {table} SET state = CAST(:to AS smallint), format = :format, token = :token, outcome = :outcome, lease_end = NULL, ended_at = {now},
	fingerprint = CASE WHEN CAST(:to AS smallint) = 5 THEN NULL ELSE fingerprint END,
	retention = :retention, tombstone = :tombstone, purge_at = {now} + :keep
WHERE ` + postgresSeen + ` AND {now} > :from AND {now} <= :until
RETURNING ended_at`,

		stRenewBatch: `
UPDATE {table} AS t SET lease_end = greatest(lease_end, {now} + b.lease), purge_at = purge_at
	+ greatest(0, greatest(lease_end, {now} + b.lease) + greatest(retention + tombstone, {memory}) - purge_at)
FROM json_to_recordset(CAST(:batch AS json)) AS b (scope text, id text, token text, lease bigint)
WHERE ` + postgresListed + ` AND t.token = decode(b.token, 'hex') AND t.lease_end IS NOT NULL AND t.state = 1
RETURNING t.scope, t.id, t.lease_end - {now}`,

		stClaimBatch: `
INSERT INTO {table} (` + postgresInserted + `)
SELECT decode(b.scope, 'hex'), decode(b.id, 'hex'), b.format, 1, b.guarantee, b.on_lapse, decode(b.token, 'hex'),
	c.n AS fence, c.n AS generation, 1, false, decode(b.fingerprint, 'hex'), c.n, c.n + b.lease, b.retention, b.tombstone, c.n + b.lease + b.keep
FROM (SELECT {now} AS n OFFSET 0) AS c, json_to_recordset(CAST(:batch AS json)) AS b (scope text, id text, format smallint,
	guarantee smallint, on_lapse smallint, token text, fingerprint text, lease bigint, retention bigint, tombstone bigint, keep bigint)
ON CONFLICT (scope, id) DO NOTHING
RETURNING scope, id, claimed_at`,

		stCompleteBatch: `
UPDATE {table} AS t SET state = b.to, format = b.format, outcome = decode(b.outcome, 'hex'), lease_end = NULL, ended_at = {now},
	retention = b.retention, tombstone = b.tombstone,
	purge_at = CASE WHEN purge_at - {now} - b.keep BETWEEN 0 AND b.keep / 8 THEN purge_at ELSE {now} + b.keep END
FROM json_to_recordset(CAST(:batch AS json)) AS b (scope text, id text, "to" smallint, format smallint, token text, outcome text,
	retention bigint, tombstone bigint, keep bigint)
WHERE ` + postgresListed + ` AND t.token = decode(b.token, 'hex') AND t.state = 1 AND t.format <= b.format
RETURNING t.scope, t.id, t.ended_at`,

		stReadBatch: `
SELECT t.scope, t.id, {seen} FROM json_to_recordset(CAST(:batch AS json)) AS b (scope text, id text)
JOIN {table} AS t ON ` + postgresListed,

		// statement_timestamp() may be compared in the index, clock_timestamp() may not.
		stPurge: `
DELETE FROM {table} WHERE ctid = ANY (ARRAY(
	SELECT ctid FROM {table}
	WHERE purge_at < CAST(date_part('epoch', statement_timestamp()) * 1000000 AS bigint)
	ORDER BY purge_at LIMIT :limit FOR UPDATE SKIP LOCKED))`,

		stList: `
SELECT scope, id, {seen} FROM {table} WHERE (scope, id) > (:scope, :id) ORDER BY scope, id LIMIT :limit`,

		stListScope: `
SELECT scope, id, {seen} FROM {table} WHERE scope = :scope AND id > :id ORDER BY id LIMIT :limit`,
	},
}

// The parts that statements of PostgreSQL share.
const (
	// A double has the microseconds to within one, and extract's numeric takes longer.
	postgresStart = `CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS bigint)`
	postgresNow   = `CAST(date_part('epoch', clock_timestamp()) * 1000000 AS bigint)`

	// postgresIdle bounds how long the transaction lives on if its client has
	// vanished without a word, unless the server does so by a setting of its own.
	postgresIdle = `CASE WHEN {idle} > 0 AND current_setting('idle_in_transaction_session_timeout') = '0'
	THEN set_config('idle_in_transaction_session_timeout', '{idle}', true) END`

	postgresInserted = `scope, id, format, state, guarantee, on_lapse, token, fence, generation, attempt, took_over,
		fingerprint, claimed_at, lease_end, retention, tombstone, purge_at`
	postgresValues = `CAST(:scope AS bytea), CAST(:id AS bytea), CAST(:format AS smallint), 1,
		CAST(:guarantee AS smallint), CAST(:on_lapse AS smallint), CAST(:token AS bytea), c.n AS fence, c.n AS generation, 1, false,
		CAST(:fingerprint AS bytea), c.n, c.n + CAST(:lease AS bigint), CAST(:retention AS bigint), CAST(:tombstone AS bigint),
		c.n + CAST(:lease AS bigint) + CAST(:keep AS bigint)`

	// postgresNothing stands where a record would.
	postgresNothing = `CAST('' AS text), CAST('' AS bytea), CAST(NULL AS bytea), CAST(NULL AS bytea)`

	// postgresSeen holds for the record that was read.
	postgresSeen = `scope = :scope AND id = :id AND fence = :fence AND state = :state AND coalesce(lease_end, ended_at) = :base`

	// postgresListed holds for the records of a batch.
	postgresListed = `t.scope = decode(b.scope, 'hex') AND t.id = decode(b.id, 'hex')`

	postgresTaken = `
	format = CAST(:format AS smallint), state = 1, guarantee = :guarantee, on_lapse = :on_lapse, token = :token,
	fence = greatest(fence + 1, c.n),
	generation = CASE WHEN CAST(:fresh AS bigint) = 1 THEN greatest(fence + 1, c.n) ELSE generation END,
	attempt = CASE WHEN CAST(:fresh AS bigint) = 1 THEN 1 ELSE attempt + 1 END,
	took_over = CAST(:took_over AS bigint) = 1, fingerprint = :fingerprint, claimed_at = c.n, lease_end = c.n + :lease, ended_at = NULL,
	retention = :retention, tombstone = :tombstone, purge_at = c.n + :lease + :keep, outcome = NULL`

	postgresComplete = `
UPDATE {table} SET state = :to, format = :format, outcome = :outcome, lease_end = NULL, ended_at = {now},
	retention = :retention, tombstone = :tombstone,
	purge_at = CASE WHEN purge_at - {now} - :keep BETWEEN 0 AND CAST(:keep AS bigint) / 8 THEN purge_at ELSE {now} + :keep END
WHERE scope = :scope AND id = :id AND state = 1 AND token = :token AND format <= :format
RETURNING ended_at`
)

// postgresKind maps SQLSTATEs (https://www.postgresql.org/docs/current/errcodes-appendix.html).
func postgresKind(f failure) kind {
	switch f.state {
	case "40001", "40P01", "55P03": // serialization_failure, deadlock_detected, lock_not_available
		return kindLocked
	case "57P01", "57P02", "57P05", "25P03", "25P04": // shutdowns, timeouts of sessions and transactions
		return kindLost
	case "25006", "57014", "25P02": // read_only_sql_transaction, query_canceled, in_failed_sql_transaction
		return kindPassing
	case "54000", "54001": // program_limit_exceeded, statement_too_complex
		return kindTooLarge
	}
	switch f.class() {
	case "53": // insufficient resources: disk full, out of memory, too many connections
		return kindFull
	case "08":
		return kindLost
	case "57", "58", "55", "40", "XX": // starting up, I/O, locks, rollbacks, corruption
		return kindPassing
	case "23", "22", "44": // constraints, data that is out of range
		return kindConstraint
	case "42", "0A", "26", "34", "25": // syntax and names, statements and cursors that are not there
		return kindWrong
	}
	return kindOther
}
