package main

import (
	"crypto/rand"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/testenv"
)

func TestRoutesHavePoliciesOfTheirOwn(t *testing.T) {
	t.Parallel()
	service := upstream(t)
	file := filepath.Join(t.TempDir(), "idem.yaml")
	must(t, os.WriteFile(file, []byte(`
upstream: `+service+`
policy:
  retention: 1h
routes:
  - match: POST /pay/{id}
    guarantee: at-most-once
  - match: POST /tenant
    principal: X-Tenant
  - match: /free
    key: ignored
  - match: POST /maybe
    key: optional
`), 0o600))
	p := start(t, "-config", file)
	for _, row := range []struct {
		path, key, tenant string
		status            int
		arrived           string // at the path, so far
	}{
		{"/pay/1", "", "", 400, "0"},
		{"/pay/1", "k", "", 201, "1"},
		{"/pay/1", "k", "", 201, "1"},
		{"/pay/2", "k", "", 201, "1"},
		{"//pay/./1", "", "", 400, "0"}, // it is the same route
		{"/tenant", "k", "", 403, "0"},
		{"/tenant", "k", "a", 201, "1"},
		{"/tenant", "k", "b", 201, "2"},
		{"/tenant", "k", "a", 201, "2"},
		{"/free", "k", "", 201, "1"},
		{"/free", "k", "", 201, "2"},
		{"/maybe", "", "", 201, "1"},
		{"/maybe", "", "", 201, "2"},
		{"/maybe", "k", "", 201, "3"},
		{"/maybe", "k", "", 201, "3"},
		{"/elsewhere", "", "", 201, "1"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+row.path, strings.NewReader("500"))
		must(t, err)
		if row.key != "" {
			r.Header.Set("Idempotency-Key", row.key)
		}
		if row.tenant != "" {
			r.Header.Set("X-Tenant", row.tenant)
		}
		a, err := do(r)
		must(t, err)
		if n := arrived(t, service, row.path); a.status != row.status || n != row.arrived {
			t.Errorf("%+v: %+v, %s arrived", row, a, n)
		}
	}
}

func TestEveryStoreServesTheGateway(t *testing.T) {
	t.Parallel()
	for name, store := range map[testenv.Name]func(t *testing.T, where string) string{
		testenv.Postgres: ownSchema, testenv.MySQL: ownDatabase, testenv.MariaDB: ownDatabase,
		testenv.Redis: func(_ *testing.T, where string) string { return where },
	} {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			address := store(t, testenv.Backend(t, name))
			service := upstream(t)
			p := start(t, "-upstream", service, "-store", address, "-retention", "1m")
			key := "idem-command-" + rand.Text() // Redis is shared
			for range 2 {
				if a := p.post("/pay", key, "500"); a.status != http.StatusCreated || a.body != `{"payment":1}` {
					t.Errorf("%+v", a)
				}
			}
		})
	}
}

func TestWrongCommandLinesAndFilesSayWhatToWrite(t *testing.T) {
	t.Parallel()
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "idem.yaml")
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	const up = "http://127.0.0.1:9"
	sqlite := "sqlite:" + filepath.Join(t.TempDir(), "idem.db")
	for want, args := range map[string][]string{
		"give -upstream":                           {},
		"write http://127.0.0.1:9000":              {"-upstream", "localhost:9000", "-store", sqlite},
		"of no known kind: write sqlite:PATH":      {"-upstream", up, "-store", "mongodb://root:secret@x"},
		"names no file":                            {"-upstream", up, "-store", "sqlite:"},
		"use at-least-once or at-most-once":        {"-upstream", up, "-store", sqlite, "-guarantee", "twice"},
		"the library inside the service":           {"-upstream", up, "-store", sqlite, "-guarantee", "exactly-once"},
		"use required, optional or ignored":        {"-upstream", up, "-store", sqlite, "-key", "maybe"},
		"is no name of a header":                   {"-upstream", up, "-store", sqlite, "-principal", "header: x"},
		"WithLeaseTTL":                             {"-upstream", up, "-store", sqlite, "-lease", "30ns"},
		"one argument too many":                    {"-upstream", up, "now"},
		"mysql://USER:PASSWORD@HOST:PORT/DATABASE": {"-upstream", up, "-store", "mysql://root:secret@"},
		"unknown field \"upstraem\"":               {"-config", file("upstraem: x")},
		"invalid duration \"soon\"":                {"-config", file("drain: soon")},
		"pattern as":                               {"-upstream", up, "-store", sqlite, "-config", file("routes:\n  - match: POST payments\n")},
	} {
		var stderr strings.Builder
		if code := run(t.Context(), append([]string{"serve"}, args...), &stderr); code != 1 || !strings.Contains(stderr.String(), want) ||
			strings.Contains(stderr.String(), "secret") {
			t.Errorf("%q: %d, %s; want %q", args, code, stderr.String(), want)
		}
	}
	var stderr strings.Builder
	if code := run(t.Context(), []string{"sevre"}, &stderr); code != 2 || !strings.Contains(stderr.String(), "usage: idem COMMAND") {
		t.Error(code, stderr.String())
	}
}
