package idemsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/idem-go/idem/driver"
)

// verification is one run of [Store.Verify].
type verification struct {
	*Store

	conn       *sql.Conn
	guarantees driver.Guarantees
	warnings   []string
}

func (v *verification) warnf(format string, a ...any) {
	v.warnings = append(v.warnings, fmt.Sprintf(format, a...))
}

// refusef is an error, or a warning if the user has accepted that writes may be lost.
func (v *verification) refusef(format string, a ...any) error {
	if v.config.risks[RiskLostWrites] {
		v.warnf(format, a...)
		return nil
	}
	return unfit(format+" Accept it with WithAcceptedRisk(RiskLostWrites) if the effects may happen again then.", a...)
}

// unfit says what keeps the database from upholding a guarantee.
func unfit(format string, a ...any) error {
	return fmt.Errorf("%w: %s", driver.ErrUnfit, fmt.Sprintf(format, a...))
}

// Verify implements [driver.Verifier]: the schema must be there and up to date,
// and the database's settings must keep what the guarantees in use promise.
// Settings that belong to a connection are read on one of the pool's: set them
// in the DSN, so that all of them have the same. Verify also prepares a
// statement, so that the first call need not.
func (s *Store) Verify(ctx context.Context, p driver.VerifyParams) (driver.VerifyResult, error) {
	if err := s.alone(ctx); err != nil {
		return driver.VerifyResult{}, err
	}
	if err := s.learn(ctx, s.db); err != nil {
		return driver.VerifyResult{}, s.failed("verify", err)
	}
	v := &verification{Store: s, guarantees: p.Guarantees}
	err := s.reading(ctx, func() error {
		v.warnings = nil
		return v.run(ctx)
	})
	if err != nil {
		return driver.VerifyResult{}, s.failed("verify", err)
	}
	return driver.VerifyResult{Warnings: v.warnings}, nil
}

func (v *verification) run(ctx context.Context) (err error) {
	if v.conn, err = v.db.Conn(ctx); err != nil {
		return err
	}
	err = v.onConn(ctx)
	// Before a statement is prepared, or a pool of one connection would wait for itself.
	if err = errors.Join(err, v.conn.Close()); err != nil || v.config.unprepared {
		return err
	}
	for _, p := range []*pool{&v.pool, v.renewals} {
		if _, err = v.stmt(ctx, p, stRead); err != nil {
			return unfit("the table %s is not what its version says: %v", v.config.table, err)
		}
	}
	return nil
}

func (v *verification) onConn(ctx context.Context) error {
	version, err := v.version(ctx, v.conn)
	if err != nil {
		return err
	}
	steps := v.dialect.migrations(v.config.table)
	if err := v.newer(version, steps); err != nil {
		return err
	}
	switch last := steps[len(steps)-1].version; {
	case version == 0:
		return unfit("there is no table %s: call Migrate, or run what Schema returns", v.config.table)
	case version < last:
		return unfit("the schema of %s has version %d, this program needs %d: call Migrate",
			v.config.table, version, last)
	}
	return v.dialect.settings(ctx, v)
}

// sqliteSettings checks https://www.sqlite.org/pragma.html#pragma_synchronous and its companions.
func sqliteSettings(ctx context.Context, v *verification) error {
	var journal, file string
	var synchronous, timeout int
	for pragma, dest := range map[string]any{
		"journal_mode": &journal, "synchronous": &synchronous, "busy_timeout": &timeout,
	} {
		if err := v.conn.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(dest); err != nil {
			return err
		}
	}
	err := v.conn.QueryRowContext(ctx, "SELECT coalesce(file, '') FROM pragma_database_list WHERE name = 'main'").Scan(&file)
	if err != nil {
		return err
	}
	journal = strings.ToLower(journal)
	advice := fmt.Sprintf("Open the pool with idemsql.SQLiteDSN(%q).", file)
	atMostOnce := v.guarantees.Has(driver.AtMostOnce)
	switch {
	case file == "":
		v.warnf("The database is in memory: other processes do not see its records, and they end with this one.")
		if atMostOnce {
			return v.refusef("AtMostOnce does not hold over the end of the process, " +
				"since the database is in memory.")
		}
		return nil
	case journal == "off" && v.guarantees.Has(driver.ExactlyOnce):
		return unfit("ExactlyOnce cannot hold with journal_mode=off, which cannot roll back. %s", advice)
	case durable(journal, synchronous):
	case atMostOnce:
		if err := v.refusef("AtMostOnce does not hold over a power failure "+
			"with journal_mode=%s and synchronous=%d. %s", journal, synchronous, advice); err != nil {
			return err
		}
	default:
		v.warnf("A power failure may undo the latest outcomes with journal_mode=%s and synchronous=%d, "+
			"so that their operations run again. %s", journal, synchronous, advice)
	}
	if journal != "wal" {
		v.warnf("With journal_mode=%s readers and writers wait for each other. %s", journal, advice)
	}
	if timeout == 0 {
		v.warnf("With busy_timeout=0 a statement of the application's own fails where it would have to wait "+
			"for a moment. %s", advice)
	}
	return nil
}

// durable reports whether a commit that was acknowledged outlives a power
// failure. With journal_mode=delete that takes EXTRA: FULL does not sync the
// directory after it has deleted the journal, whose return would roll the
// commit back.
func durable(journal string, synchronous int) bool {
	switch journal {
	case "wal", "truncate", "persist":
		return synchronous >= 2
	case "delete":
		return synchronous >= 3
	}
	return false
}
