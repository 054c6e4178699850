package idemsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/idem-go/idem/driver"
)

// What the driver itself says has no number of the server's.
const (
	packetTooLarge = -1
	connectionLost = -2
)

// mysqlCode finds the number of an error of MySQL's driver. Its type has no
// method that tells it, only a field.
func mysqlCode(err error) (failure, bool) {
	return find(err, func(err error) (failure, bool) {
		// The driver's own errors are values, which their text alone identifies.
		switch err.Error() {
		case "packet for query is too large. Try adjusting the `Config.MaxAllowedPacket`":
			return failure{code: packetTooLarge}, true
		case "invalid connection":
			return failure{code: connectionLost}, true
		}
		v := reflect.ValueOf(err)
		if !declaredIn(err, mysqlDrivers) || v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
			return failure{}, false
		}
		number := v.Elem().FieldByName("Number")
		if !number.IsValid() || !number.CanUint() {
			return failure{}, false
		}
		if strings.Contains(err.Error(), "max_allowed_packet") {
			return failure{code: packetTooLarge}, true // 1105 is everything that has no number of its own
		}
		return failure{code: int(number.Uint())}, true //nolint:gosec // it is a uint16
	})
}

// mysqlSettings checks what an acknowledged commit is worth
// (https://dev.mysql.com/doc/refman/8.4/en/innodb-parameters.html#sysvar_innodb_flush_log_at_trx_commit,
// https://dev.mysql.com/doc/refman/8.4/en/replication-options-binary-log.html#sysvar_sync_binlog).
func mysqlSettings(ctx context.Context, v *verification) error {
	var version, engine, mode string
	var flush, logBin, sync, readOnly int
	err := v.conn.QueryRowContext(ctx, `SELECT @@version, @@innodb_flush_log_at_trx_commit, @@log_bin, @@sync_binlog,
		@@global.read_only, @@sql_mode`).Scan(&version, &flush, &logBin, &sync, &readOnly, &mode)
	if err != nil {
		return err
	}
	err = v.conn.QueryRowContext(ctx, `SELECT COALESCE(MAX(engine), '') FROM information_schema.tables
		WHERE table_schema = DATABASE() AND table_name = ?`, v.config.table).Scan(&engine)
	isMariaDB := strings.Contains(version, "MariaDB")
	switch {
	case err != nil:
		return err
	case !strings.EqualFold(engine, "InnoDB"):
		return unfit("The table %s is kept by %s, which has no transactions: ALTER TABLE %s ENGINE = InnoDB.",
			v.config.table, engine, v.config.table)
	case strings.Contains(mode, "SIMULTANEOUS_ASSIGNMENT"):
		return unfit("sql_mode has SIMULTANEOUS_ASSIGNMENT, under which an UPDATE cannot use what it has just set: leave it out.")
	case !isMariaDB && v.dialect.name == "mariadb":
		return unfit("The server is %s, not MariaDB: use WithDialect(MySQL).", version)
	}
	if readOnly != 0 {
		v.warnf("The server is read-only: a user without the privilege to write there cannot claim a key.")
	}
	if isMariaDB && !v.isMariaDB() {
		v.warnf("The server is MariaDB: WithDialect(MariaDB) saves a round trip for each duplicate.")
	}
	if logBin != 0 {
		if err := v.binlog(ctx); err != nil {
			return err
		}
	}
	if flush == 1 && (logBin == 0 || sync == 1) {
		return nil
	}
	text := fmt.Sprintf("with innodb_flush_log_at_trx_commit=%d and sync_binlog=%d. Set both to 1.", flush, sync)
	if v.guarantees.Has(driver.AtMostOnce) {
		return v.refusef("AtMostOnce does not hold over a crash of the server %s", text)
	}
	v.warnf("A crash of the server may undo the latest outcomes, so that their operations run again, %s", text)
	return nil
}

// binlog refuses a binary log of statements: GET_LOCK and the clock answer
// otherwise on a replica (https://dev.mysql.com/doc/refman/8.4/en/replication-rbr-safe-unsafe.html).
func (v *verification) binlog(ctx context.Context) error {
	var name, format string
	err := v.conn.QueryRowContext(ctx, `SHOW VARIABLES LIKE 'binlog_format'`).Scan(&name, &format)
	switch {
	case errors.Is(err, sql.ErrNoRows): // a version that knows rows only
		return nil
	case err != nil || format != "STATEMENT":
		return err
	}
	return v.refusef("With binlog_format=STATEMENT replicas repeat statements whose answers differ there, and keep other records. " +
		"Set it to ROW.")
}
