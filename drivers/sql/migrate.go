package idemsql

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/idem-go/idem/driver"
)

//go:embed schema
var schema embed.FS

// migration is one step of the schema. Steps are never changed once released.
type migration struct {
	version    int
	statements []string
}

// migrations reads the steps of a dialect:
// schema/<dialect>/<version>_<what>.sql, statements that end in a semicolon at
// the end of a line.
func (d *dialect) migrations(table string) []migration {
	dir := path.Join("schema", cmp.Or(d.schema, d.name))
	files, err := fs.ReadDir(schema, dir)
	if err != nil {
		panic(err) // the files are part of the program
	}
	all := make([]migration, 0, len(files))
	for _, f := range files {
		number, _, _ := strings.Cut(f.Name(), "_")
		version, err := strconv.Atoi(number)
		if err != nil {
			panic(fmt.Sprintf("idemsql: %s has no version", f.Name()))
		}
		text, err := schema.ReadFile(path.Join(dir, f.Name()))
		if err != nil {
			panic(err)
		}
		m := migration{version: version}
		for s := range strings.SplitSeq(strings.ReplaceAll(string(text), "{table}", table), ";\n") {
			if s = strings.TrimSpace(s); s != "" {
				m.statements = append(m.statements, s)
			}
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b migration) int { return cmp.Compare(a.version, b.version) })
	return all
}

func createVersions(table string) string {
	return "CREATE TABLE IF NOT EXISTS " + table + "_version (version INTEGER NOT NULL PRIMARY KEY)"
}

func insertVersion(table string, version int) string {
	return fmt.Sprintf("INSERT INTO %s_version (version) VALUES (%d)", table, version)
}

// Schema returns the statements that create the tables of a store from nothing,
// for who migrates with another tool. [WithTable] applies; an unknown dialect
// and an option out of its range are errors.
func Schema(d Dialect, opts ...Option) ([]string, error) {
	c, err := configure(append(slices.Clone(opts), WithDialect(d)))
	if err != nil {
		return nil, err
	}
	list := []string{createVersions(c.table)}
	for _, m := range d.spec().migrations(c.table) {
		list = append(list, m.statements...)
		list = append(list, insertVersion(c.table, m.version))
	}
	return list, nil
}

// Migrate creates the tables, or brings them up to this version of the package.
// It does nothing where there is nothing to do, and any number of processes may
// call it at once. A schema of a later version is left as it is, and is an
// error.
func (s *Store) Migrate(ctx context.Context) error {
	if err := s.alone(ctx); err != nil {
		return err
	}
	if err := s.writing(ctx, func() error { return s.migrate(ctx) }); err != nil {
		return s.failed("migrate", err)
	}
	return nil
}

func (s *Store) migrate(ctx context.Context) (err error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := s.execAll(ctx, conn, s.dialect.migrateBegin); err != nil {
		return err
	}
	done := false
	defer func() {
		if !done {
			_ = s.execAll(context.WithoutCancel(ctx), conn, s.dialect.migrateUndo)
		}
	}()
	if err := s.migrateOn(ctx, conn); err != nil {
		return err
	}
	if err := s.execAll(ctx, conn, s.dialect.migrateEnd); err != nil {
		return err
	}
	done = true
	return nil
}

func (s *Store) migrateOn(ctx context.Context, conn *sql.Conn) error {
	version, err := s.version(ctx, conn)
	if err != nil {
		return err
	}
	steps := s.dialect.migrations(s.config.table)
	if err := s.newer(version, steps); err != nil {
		return err
	}
	run := []string{createVersions(s.config.table)}
	for _, m := range steps {
		if m.version > version {
			run = append(run, m.statements...)
			run = append(run, insertVersion(s.config.table, m.version))
		}
	}
	return s.execAll(ctx, conn, run)
}

func (s *Store) execAll(ctx context.Context, conn *sql.Conn, statements []string) error {
	for _, statement := range statements {
		if _, err := conn.ExecContext(ctx, strings.ReplaceAll(statement, "{table}", s.config.table)); err != nil {
			return err
		}
	}
	return nil
}

// version is the version of the schema; 0: there is none.
func (s *Store) version(ctx context.Context, conn *sql.Conn) (version int, err error) {
	var n int
	err = conn.QueryRowContext(ctx, strings.ReplaceAll(s.dialect.versioned, "{table}", s.config.table)).Scan(&n)
	if err != nil || n == 0 {
		return 0, err
	}
	err = conn.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) FROM "+s.config.table+"_version").Scan(&version)
	return version, err
}

func (s *Store) newer(version int, steps []migration) error {
	if last := steps[len(steps)-1].version; version > last {
		return fmt.Errorf("%w: %w: the schema of %s has version %d, this program knows %d: update the program",
			driver.ErrUnfit, driver.ErrNewerFormat, s.config.table, version, last)
	}
	return nil
}
