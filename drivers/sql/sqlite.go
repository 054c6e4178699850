package idemsql

import "time"

var sqliteDrivers = []string{"modernc.org/sqlite"}

const sqliteNow = `CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000`

// sqliteListed is whose records a batch is about.
const sqliteListed = `unhex(value ->> 'scope') AS b_scope, unhex(value ->> 'id') AS b_id, unhex(value ->> 'token') AS b_token`

// sqlite speaks SQLite 3.42 or later.
//
// Its clock has milliseconds (https://www.sqlite.org/lang_datefunc.html). It
// stands still within a statement, and is read after the statement has its
// locks, since a statement takes them before it computes anything.
//
// Leases read first: an insert that finds its key taken writes nothing, but it
// has waited for the file's one write lock.
var sqlite = dialect{
	name:  "sqlite",
	title: "SQLite",

	now: sqliteNow,
	head: `format || ' ' || state || ' ' || guarantee || ' ' || on_lapse || ' ' || fence || ' ' || generation || ' ' || attempt
	|| ' ' || took_over || ' ' || claimed_at || ' ' || coalesce(lease_end, '') || ' ' || coalesce(ended_at, '')
	|| ' ' || coalesce(retention, '') || ' ' || coalesce(tombstone, '') || ' ' || (` + sqliteNow + `)`,
	unit:         time.Millisecond,
	numbered:     "?",
	singleWriter: true,
	maxOutcome:   1_000_000_000 - 16<<10, // SQLITE_MAX_LENGTH bounds the whole row: https://www.sqlite.org/limits.html
	leases:       ReadFirst,
	duplicates:   20, // a duplicate that claims first waits for the write lock

	migrateBegin: []string{`BEGIN IMMEDIATE`},
	migrateEnd:   []string{`COMMIT`},
	migrateUndo:  []string{`ROLLBACK`},
	versioned:    `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '{table}_version'`,

	drivers:  sqliteDrivers,
	code:     sqliteCode,
	kind:     sqliteKind,
	settings: sqliteSettings,

	templates: [statementCount]string{
		stRead: `
SELECT {record} FROM {table} WHERE scope = :scope AND id = :id`,

		stClaim: `
INSERT INTO {table} (scope, id, format, state, guarantee, on_lapse, token, fence, generation, attempt, took_over,
	fingerprint, claimed_at, lease_end, retention, tombstone, purge_at)
VALUES (:scope, :id, :format, 1, :guarantee, :on_lapse, :token, {now}, {now}, 1, 0,
	:fingerprint, {now}, {now} + :lease, :retention, :tombstone, {now} + :lease + :keep)
ON CONFLICT (scope, id) DO NOTHING
RETURNING claimed_at`,

		stTake: `
UPDATE {table} SET
	format = :format, state = 1, guarantee = :guarantee, on_lapse = :on_lapse, token = :token,
	fence = max(fence + 1, {now}),
	generation = CASE WHEN :fresh = 1 THEN max(fence + 1, {now}) ELSE generation END,
	attempt = CASE WHEN :fresh = 1 THEN 1 ELSE attempt + 1 END,
	took_over = :took_over, fingerprint = :fingerprint, claimed_at = {now}, lease_end = {now} + :lease, ended_at = NULL,
	retention = :retention, tombstone = :tombstone, purge_at = {now} + :lease + :keep, outcome = NULL
WHERE scope = :scope AND id = :id AND fence = :fence AND state = :state AND coalesce(lease_end, ended_at) = :base
	AND {now} > :from AND {now} <= :until
RETURNING claimed_at`,

		stComplete: `
UPDATE {table} SET state = :to, format = :format, outcome = :outcome, lease_end = NULL, ended_at = {now},
	retention = :retention, tombstone = :tombstone,
	purge_at = CASE WHEN purge_at - {now} - :keep BETWEEN 0 AND :keep / 8 THEN purge_at ELSE {now} + :keep END
WHERE scope = :scope AND id = :id AND state = 1 AND token = :token AND format <= :format
RETURNING {now}`,

		stRelease: `
UPDATE {table} SET state = 5, fingerprint = NULL, lease_end = NULL, ended_at = {now},
	retention = :retention, tombstone = 0, purge_at = {now} + :keep
WHERE scope = :scope AND id = :id AND state = 1 AND token = :token
RETURNING {now}`,

		stRenew: `
UPDATE {table} SET lease_end = max(lease_end, {now} + :lease),
	purge_at = purge_at + max(0, max(lease_end, {now} + :lease) + max(retention + tombstone, {memory}) - purge_at)
WHERE scope = :scope AND id = :id AND state = 1 AND token = :token AND lease_end IS NOT NULL
RETURNING lease_end - {now}`,

		stSettle: `
UPDATE {table} SET state = :to, format = :format, token = :token, outcome = :outcome, lease_end = NULL, ended_at = {now},
	fingerprint = CASE WHEN :to = 5 THEN NULL ELSE fingerprint END,
	retention = :retention, tombstone = :tombstone, purge_at = {now} + :keep
WHERE scope = :scope AND id = :id AND fence = :fence AND state = :state AND coalesce(lease_end, ended_at) = :base
	AND {now} > :from AND {now} <= :until
RETURNING {now}`,

		stRenewBatch: `
UPDATE {table} AS t SET lease_end = max(lease_end, {now} + b.lease),
	purge_at = purge_at + max(0, max(lease_end, {now} + b.lease) + max(retention + tombstone, {memory}) - purge_at)
FROM (SELECT ` + sqliteListed + `, value ->> 'lease' AS lease FROM json_each(:batch)) AS b
WHERE t.scope = b.b_scope AND t.id = b.b_id AND t.state = 1 AND t.token = b.b_token AND t.lease_end IS NOT NULL
RETURNING scope, id, lease_end - {now}`,

		// Without a WHERE, ON would belong to a join.
		stClaimBatch: `
INSERT INTO {table} (scope, id, format, state, guarantee, on_lapse, token, fence, generation, attempt, took_over,
	fingerprint, claimed_at, lease_end, retention, tombstone, purge_at)
SELECT unhex(value ->> 'scope'), unhex(value ->> 'id'), value ->> 'format', 1, value ->> 'guarantee', value ->> 'on_lapse',
	unhex(value ->> 'token'), {now}, {now}, 1, 0, unhex(value ->> 'fingerprint'), {now}, {now} + (value ->> 'lease'),
	value ->> 'retention', value ->> 'tombstone', {now} + (value ->> 'lease') + (value ->> 'keep')
FROM json_each(:batch) WHERE true
ON CONFLICT (scope, id) DO NOTHING
RETURNING scope, id, claimed_at`,

		stCompleteBatch: `
UPDATE {table} AS t SET state = b.b_to, format = b.b_format, outcome = b.b_outcome, lease_end = NULL, ended_at = {now},
	retention = b.b_retention, tombstone = b.b_tombstone,
	purge_at = CASE WHEN purge_at - {now} - b.keep BETWEEN 0 AND b.keep / 8 THEN purge_at ELSE {now} + b.keep END
FROM (SELECT ` + sqliteListed + `, value ->> 'to' AS b_to, value ->> 'format' AS b_format, unhex(value ->> 'outcome') AS b_outcome,
	value ->> 'retention' AS b_retention, value ->> 'tombstone' AS b_tombstone, value ->> 'keep' AS keep FROM json_each(:batch)) AS b
WHERE t.scope = b.b_scope AND t.id = b.b_id AND t.state = 1 AND t.token = b.b_token AND t.format <= b.b_format
RETURNING scope, id, ended_at`,

		stReadBatch: `
SELECT scope, id, {seen} FROM (SELECT ` + sqliteListed + ` FROM json_each(:batch)) AS b
CROSS JOIN {table} ON scope = b_scope AND id = b_id`,

		stPurge: `
DELETE FROM {table} WHERE rowid IN
	(SELECT rowid FROM {table} WHERE purge_at < {now} ORDER BY purge_at LIMIT :limit)`,

		stList: `
SELECT scope, id, {record} FROM {table} WHERE (scope, id) > (:scope, :id) ORDER BY scope, id LIMIT :limit`,

		stListScope: `
SELECT scope, id, {record} FROM {table} WHERE scope = :scope AND id > :id ORDER BY id LIMIT :limit`,
	},
}
