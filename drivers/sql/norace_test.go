//go:build !race

package idemsql_test

const raced = false
