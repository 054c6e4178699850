package testenv_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/testenv"
)

// ending is how a test that asks for a backend ends.
type ending struct {
	verdict string // returned, skipped or failed
	text    string // what was returned, or the reason
}

// recorder stands for the test that asks. As in a real one, Skipf and Fatalf do not return.
type recorder struct {
	testing.TB // for what Backend may use besides: TempDir, Helper

	ending ending
}

func (r *recorder) Skipf(format string, args ...any)  { r.endf("skipped", format, args...) }
func (r *recorder) Fatalf(format string, args ...any) { r.endf("failed", format, args...) }

func (r *recorder) endf(verdict, format string, args ...any) {
	r.ending = ending{verdict, fmt.Sprintf(format, args...)}
	panic(r)
}

func ask(t *testing.T, name testenv.Name) (end ending) {
	t.Helper()

	r := &recorder{TB: t}

	defer func() {
		if p := recover(); p != nil && p != any(r) {
			panic(p)
		} else if p != nil {
			end = r.ending
		}
	}()

	return ending{"returned", testenv.Backend(r, name)}
}

func TestBackend(t *testing.T) {
	for _, tc := range []struct {
		name                  string
		backend               testenv.Name
		require               string
		postgres, redis       string
		wantVerdict, wantText string
	}{
		{name: "set is returned", backend: testenv.Postgres, postgres: "postgres://x", wantVerdict: "returned", wantText: "postgres://x"},
		{name: "set and required is returned", backend: testenv.Postgres, postgres: "postgres://x", require: "postgres", wantVerdict: "returned", wantText: "postgres://x"},
		{name: "absent is skipped and says what to do", backend: testenv.Postgres, wantVerdict: "skipped", wantText: "IDEM_TEST_POSTGRES is not set: run `make test`"},
		{name: "absent but another one required is skipped", backend: testenv.Postgres, require: "sqlite,redis", wantVerdict: "skipped", wantText: "IDEM_TEST_POSTGRES"},
		{name: "absent and required fails and says what to do", backend: testenv.Postgres, require: "sqlite,postgres", wantVerdict: "failed", wantText: "IDEM_TEST_POSTGRES is not set: run `make test`"},
		{name: "blanks in the requirement do not matter", backend: testenv.Postgres, require: " sqlite , postgres ,", wantVerdict: "failed", wantText: "IDEM_TEST_POSTGRES"},
		{name: "an unknown requirement fails", backend: testenv.Postgres, postgres: "postgres://x", require: "postgres,postgers", wantVerdict: "failed", wantText: `"postgers"`},
		{name: "an unknown requirement fails for SQLite too", backend: testenv.SQLite, require: "sqlit", wantVerdict: "failed", wantText: `"sqlit"`},
		{name: "an unknown backend fails", backend: "oracle", wantVerdict: "failed", wantText: `"oracle"`},
		{name: "an address of Redis becomes a URL", backend: testenv.Redis, redis: "127.0.0.1:1", wantVerdict: "returned", wantText: "redis://127.0.0.1:1"},
		{name: "a URL of Redis stays", backend: testenv.Redis, redis: "rediss://127.0.0.1:1", wantVerdict: "returned", wantText: "rediss://127.0.0.1:1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("IDEM_TEST_REQUIRE", tc.require)
			t.Setenv("IDEM_TEST_POSTGRES", tc.postgres)
			t.Setenv("IDEM_TEST_REDIS", tc.redis)

			got := ask(t, tc.backend)

			if got.verdict != tc.wantVerdict || !strings.Contains(got.text, tc.wantText) {
				t.Errorf("%s %q, want %s with %q", got.verdict, got.text, tc.wantVerdict, tc.wantText)
			}
		})
	}
}

func TestSQLiteIsAlwaysThere(t *testing.T) {
	t.Setenv("IDEM_TEST_REQUIRE", "sqlite")

	first, second := testenv.Backend(t, testenv.SQLite), testenv.Backend(t, testenv.SQLite)

	if first == second {
		t.Errorf("two calls share the file %s", first)
	}

	if _, err := os.Stat(filepath.Dir(first)); err != nil {
		t.Errorf("the file cannot be created: %v", err)
	}
}
