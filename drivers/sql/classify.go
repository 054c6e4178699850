package idemsql

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/idem-go/idem/driver"
)

// failure is a database's own code for an error.
type failure struct {
	code  int
	state string // SQLSTATE
}

// class is the class of the SQLSTATE.
func (f failure) class() string { return f.state[:min(2, len(f.state))] }

// kind is what a failure means to this package.
type kind uint8

const (
	kindOther      kind = iota
	kindLocked          // another writer is in the way; nothing took effect, and trying again may succeed
	kindFull            // no space for what was to be written; nothing took effect
	kindTooLarge        // no row can be as large
	kindConstraint      // the data contradicts what is there
	kindPassing         // the database cannot do it now
	kindLost            // the connection is gone, and with it what it had not committed
	kindWrong           // the statement is wrong
)

// kindOf is the kind of a failure of this store's own statements.
func (s *Store) kindOf(err error) kind {
	if f, ok := s.dialect.code(err); ok {
		return s.dialect.kind(f)
	}
	return kindOther
}

func (s *Store) is(err error, k kind) bool { return s.kindOf(err) == k }

// failed says what the store was doing when err happened, and marks what the
// contract has a name for.
func (s *Store) failed(what string, err error) error {
	switch s.kindOf(err) {
	case kindFull:
		err = fmt.Errorf("%w: %w", driver.ErrBusy, err)
	case kindTooLarge:
		err = fmt.Errorf("%w: %w", driver.ErrTooLarge, err)
	default:
	}
	return fmt.Errorf("idemsql: %s: %w", what, err)
}

// Classify says what an error that an effect met in a database means for its
// operation, for every driver that this package knows, by the codes that the
// errors carry (https://www.sqlite.org/rescode.html):
//
//   - KindInfrastructure, so that it is not stored as an answer: a database
//     that is locked, full, read-only, damaged or out of reach, a statement
//     that was interrupted, a connection that broke;
//   - KindDomain: a constraint that the effect violates, a value that is too large;
//   - KindBug: a statement that the database does not understand, a
//     transaction that was used after its end.
//
// It is KindUnknown for nil and for every other error, [sql.ErrNoRows] among them.
func Classify(err error) driver.FailureKind {
	switch {
	case errors.Is(err, sqldriver.ErrBadConn), errors.Is(err, sql.ErrConnDone):
		return driver.KindInfrastructure
	case errors.Is(err, sql.ErrTxDone):
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return driver.KindInfrastructure
		}
		return driver.KindBug
	}
	for d := SQLite; d.spec() != nil; d++ {
		f, ok := d.spec().code(err)
		if !ok {
			continue
		}
		switch d.spec().kind(f) {
		case kindLocked, kindFull, kindPassing, kindLost:
			return driver.KindInfrastructure
		case kindConstraint, kindTooLarge:
			return driver.KindDomain
		case kindWrong:
			return driver.KindBug
		case kindOther:
		}
	}
	return driver.KindUnknown
}

// Classify implements [driver.Classifier] with the function of that name.
func (s *Store) Classify(p driver.ClassifyParams) driver.ClassifyResult {
	return driver.ClassifyResult{Kind: Classify(p.Err)}
}

// sqliteCode finds the code of an error of SQLite's driver. Errors of the
// application may have a method Code as well, so the package counts.
func sqliteCode(err error) (failure, bool) {
	return find(err, func(err error) (failure, bool) {
		c, ok := err.(interface{ Code() int })
		if !ok || !declaredIn(err, sqliteDrivers) {
			return failure{}, false
		}
		return failure{code: c.Code()}, true
	})
}

// stateCode finds the SQLSTATE of an error, for drivers whose errors have a method of that name.
func stateCode(err error) (failure, bool) {
	return find(err, func(err error) (failure, bool) {
		c, ok := err.(interface{ SQLState() string })
		if !ok {
			return failure{}, false
		}
		return failure{state: c.SQLState()}, true
	})
}

// sqliteKind maps primary result codes, the low byte of the extended ones.
func sqliteKind(f failure) kind {
	switch f.code & 0xff {
	case 5, 6: // BUSY, LOCKED
		return kindLocked
	case 13: // FULL
		return kindFull
	case 18: // TOOBIG
		return kindTooLarge
	case 19: // CONSTRAINT
		return kindConstraint
	case 3, 4, 7, 8, 9, 10, 11, 14, 15, 17, 22, 23, 26:
		// PERM, ABORT, NOMEM, READONLY, INTERRUPT, IOERR, CORRUPT, CANTOPEN,
		// PROTOCOL, SCHEMA, NOLFS, AUTH, NOTADB
		return kindPassing
	case 1, 2, 12, 20, 21, 25: // ERROR, INTERNAL, NOTFOUND, MISMATCH, MISUSE, RANGE
		return kindWrong
	}
	return kindOther
}

// find walks the tree of an error, in the order of [errors.As], until f finds something.
func find(err error, f func(error) (failure, bool)) (failure, bool) {
	if err == nil {
		return failure{}, false
	}
	if found, ok := f(err); ok {
		return found, true
	}
	switch u := err.(type) { //nolint:errorlint // this is what unwraps
	case interface{ Unwrap() error }:
		return find(u.Unwrap(), f)
	case interface{ Unwrap() []error }:
		for _, err := range u.Unwrap() {
			if found, ok := find(err, f); ok {
				return found, true
			}
		}
	}
	return failure{}, false
}

// declaredIn reports whether the type of v is declared in one of the packages, or below it.
func declaredIn(v any, paths []string) bool {
	t := reflect.TypeOf(v)
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return false
	}
	for _, path := range paths {
		if t.PkgPath() == path || strings.HasPrefix(t.PkgPath(), path+"/") {
			return true
		}
	}
	return false
}
