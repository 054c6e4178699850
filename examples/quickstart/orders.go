package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

//go:embed orders.jsonl
var sample string

// order is what a client asks for. Its ID is the idempotency key, the whole of
// it the fingerprint.
type order struct {
	ID    string `json:"id"`
	Item  string `json:"item"`
	Cents int    `json:"cents"`
}

// receipt is what the client gets, and gets again.
type receipt struct {
	Charge string
	Cents  int
}

func readOrders(file string) (orders []order, err error) {
	in := io.Reader(strings.NewReader(sample))
	if file != "" {
		f, err := os.Open(file) //nolint:gosec // the user names it
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return nil, fmt.Errorf("line %d is no order: %w", n, err)
		}
		orders = append(orders, o)
	}
	return orders, lines.Err()
}
