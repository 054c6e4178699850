package main

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
)

// ownSchema makes a schema of PostgreSQL for the test, and returns the URL of a store in it.
func ownSchema(t *testing.T, url string) string {
	t.Helper()
	name := made(t, "postgres", url, "CREATE SCHEMA ", "DROP SCHEMA ", " CASCADE")
	return url + "&search_path=" + name
}

// ownDatabase makes a database of MySQL or MariaDB for the test, and returns the URL of a store in it.
func ownDatabase(t *testing.T, dsn string) string {
	t.Helper()
	name := made(t, "mysql", dsn, "CREATE DATABASE ", "DROP DATABASE ", "")
	account, rest, _ := strings.Cut(dsn, "@tcp(")
	host, _, _ := strings.Cut(rest, ")")
	return "mysql://" + account + "@" + host + "/" + name
}

// made makes something with a name of its own, which is gone after the test.
func made(t *testing.T, driver, dsn, create, drop, cascade string) string {
	t.Helper()
	name := "idem_command_" + strings.ToLower(rand.Text()[:10])
	db, err := sqlx.Open(driver, dsn)
	must(t, err)
	db.MustExec(create + name)
	t.Cleanup(func() {
		db.MustExec(drop + name + cascade)
		_ = db.Close()
	})
	return name
}
