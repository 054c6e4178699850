//go:build race

package idemsql_test

// raced says that the race detector makes SQLite, which is all in Go, some twenty times slower.
const raced = true
