package classification_test

import (
	"database/sql"
	"fmt"
	"testing"
	"time"
)

// killed returns what a statement on c ends with whose session the server is told to end.
func killed(t testing.TB, db *sql.DB, c *sql.Conn, id, kill, statement string) error {
	t.Helper()
	var n int64
	must(t, c.QueryRowContext(t.Context(), id).Scan(&n))
	done := make(chan error, 1)
	go func() { done <- fails(t, c, statement) }()
	for {
		var args []any
		q := kill
		if q == "KILL" {
			q = fmt.Sprint("KILL ", n)
		} else {
			args = []any{n}
		}
		_, _ = db.ExecContext(t.Context(), q, args...)
		select {
		case err := <-done:
			return err
		case <-time.After(50 * time.Millisecond): // until it has begun
		}
	}
}

// whileAsking does something while a statement is under way, again and again
// until that ends, and returns what it ended with.
func whileAsking(t testing.TB, db *sql.DB, do func(), statement string) error {
	t.Helper()
	c := conn(t, db)
	done := make(chan error, 1)
	go func() { done <- fails(t, c, statement) }()
	for {
		select {
		case err := <-done:
			return err
		case <-time.After(50 * time.Millisecond):
			do()
		}
	}
}
