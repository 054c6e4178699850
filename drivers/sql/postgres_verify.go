package idemsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/idem-go/idem/driver"
)

// postgresSettings checks what an acknowledged commit is worth
// (https://www.postgresql.org/docs/current/runtime-config-wal.html).
func postgresSettings(ctx context.Context, v *verification) error {
	var commit, fsync, version string
	var recovery bool
	err := v.conn.QueryRowContext(ctx, `SELECT current_setting('synchronous_commit'), current_setting('fsync'),
		current_setting('server_version_num'), pg_is_in_recovery()`).Scan(&commit, &fsync, &version, &recovery)
	switch {
	case err != nil:
		return err
	case recovery:
		return unfit("The server is a standby, which takes no writes: connect to the primary.")
	case len(version) < 6 || version < "130000":
		return unfit("The server has version %s; 13 or later is needed.", version)
	}
	if err := v.pooler(ctx); err != nil || commit != "off" && fsync == "on" {
		return err
	}
	text := fmt.Sprintf("with synchronous_commit=%s and fsync=%s. Set both to on.", commit, fsync)
	if v.guarantees.Has(driver.AtMostOnce) {
		return v.refusef("AtMostOnce does not hold over a crash of the server %s", text)
	}
	v.warnf("A crash of the server may undo the latest outcomes, so that their operations run again, %s", text)
	return nil
}

const poolerAdvice = "A pooler such as PgBouncer in transaction mode is between the pool and the server, " +
	"and a statement that was prepared is not found again: use WithoutPreparedStatements, " +
	"with binary_parameters=yes in the DSN of lib/pq, or default_query_exec_mode=exec in that of pgx."

// pooler refuses prepared statements where each transaction may get another
// session of the server. It shows when a second connection meets the session of
// the first, and prepared statements may work all the same: some poolers
// prepare them again.
func (v *verification) pooler(ctx context.Context) error {
	if stats := v.db.Stats(); stats.MaxOpenConnections > 0 && stats.InUse >= stats.MaxOpenConnections {
		return nil // there is no second connection
	}
	probe, err := v.probeFirst(ctx)
	if err != nil {
		return v.poolerError(err)
	}
	defer probe.close()
	shared, err := probe.withOther(ctx)
	if err != nil {
		return v.poolerError(err)
	}
	if shared && v.config.unprepared && declaredIn(v.db.Driver(), []string{"github.com/lib/pq"}) {
		v.warnf("A pooler in transaction mode is between the pool and the server: " +
			"without binary_parameters=yes in its DSN, lib/pq may lose a statement between its two round trips.")
	}
	return nil
}

// poolerError tells what only a pooler does from other errors.
func (v *verification) poolerError(err error) error {
	f, ok := stateCode(err)
	// invalid_sql_statement_name, duplicate_prepared_statement, protocol_violation
	if ok && (f.class() == "26" || f.state == "42P05" || f.state == "08P01") {
		return unfit("%s (%v)", poolerAdvice, err)
	}
	return err
}

// poolerProbe is a statement on the first connection.
type poolerProbe struct {
	*verification

	stmt *sql.Stmt // nil: statements are not prepared
	pid  int       // of the session that it ran in
}

const poolerStatement = "SELECT pg_backend_pid() + CAST($1 AS integer)"

func (v *verification) probeFirst(ctx context.Context) (p *poolerProbe, err error) {
	p = &poolerProbe{verification: v}
	if !v.config.unprepared {
		if p.stmt, err = v.conn.PrepareContext(ctx, poolerStatement); err != nil {
			return nil, err
		}
	}
	if p.pid, err = p.run(ctx); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *poolerProbe) run(ctx context.Context) (pid int, err error) {
	if p.stmt != nil {
		return pid, p.stmt.QueryRowContext(ctx, 0).Scan(&pid)
	}
	return pid, p.conn.QueryRowContext(ctx, poolerStatement, 0).Scan(&pid)
}

func (p *poolerProbe) close() {
	if p.stmt != nil {
		_ = p.stmt.Close()
	}
}

// withOther runs the statement again while a transaction on a second connection
// has the session, if that is where it gets.
func (p *poolerProbe) withOther(ctx context.Context) (shared bool, err error) {
	tx, err := p.db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer func() {
		if e := tx.Rollback(); e != nil && !errors.Is(e, sql.ErrTxDone) {
			err = errors.Join(err, e)
		}
	}()
	var pid int
	if err := tx.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil || pid != p.pid {
		return false, err
	}
	_, err = p.run(ctx)
	return true, err
}
