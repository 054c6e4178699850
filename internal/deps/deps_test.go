// Package deps_test holds the rules about who may depend on whom, directly or not. What a package depends on ends up in
// its users' binaries and in the reports of their scanners.
package deps_test

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	module = "github.com/idem-go/idem"
	root   = "../.."
)

// rule says what a package may depend on, besides the packages with the same rule and the rest of the standard library.
type rule struct {
	folder string // the rule's key, filled in by ruleOf

	own     []string // packages of this module and those below them; "." is the root package alone
	modules []string // other modules; "" is all of them
	std     []string // packages of the standard library that are otherwise forbidden
}

// The core brings its default codec.
var msgpack = []string{"github.com/vmihailenco/msgpack/v5", "github.com/vmihailenco/tagparser/v2"}

// rules are by package; a package without one has that of the nearest folder above it.
var rules = map[string]rule{
	".":                {own: []string{"codec", "driver", "internal"}, modules: msgpack},
	"driver":           {},
	"codec":            {own: []string{"internal"}, modules: msgpack},
	"internal":         {own: []string{"codec", "driver", "internal"}, modules: msgpack},
	"internal/testenv": {std: []string{"testing"}},
	"drivers/memory":   {own: []string{"driver", "internal"}},
	"drivers/redis":    {own: []string{"driver", "internal"}, modules: []string{"github.com/redis/rueidis", "golang.org/x/sys"}},
	"drivers/sql":      {own: []string{"driver", "internal"}, modules: []string{"github.com/jmoiron/sqlx"}, std: []string{"database/sql"}},
	"transports":       {own: []string{".", "codec", "driver", "internal"}, modules: msgpack, std: []string{"net/http"}},
	"transports/idemhttp/internal/rules": {
		own: []string{".", "codec", "driver", "internal", "transports"}, modules: msgpack, std: []string{"net/http", "testing"},
	},
	"conformance": {own: []string{".", "codec", "driver", "internal"}, modules: msgpack, std: []string{"testing"}},
	"examples":    {own: []string{".", "codec", "driver", "drivers", "transports", "internal"}, modules: []string{""}, std: forbidden},

	// Faults wrap a driver in a running program too.
	"conformance/faults": {own: []string{"driver", "internal"}},
}

// forbidden packages of the standard library: the first two because of what they say about the package's place, the last
// because it must not be in a user's binary.
var forbidden = []string{"database/sql", "net/http", "testing"}

// testOnly packages may be in the dependencies of tests alone, whatever the rules say.
var testOnly = []string{"internal/testenv", "transports/idemhttp/internal/rules"}

func TestDependencies(t *testing.T) {
	t.Parallel()

	for path, dependencies := range listPackages(t) {
		t.Run(path, func(t *testing.T) {
			t.Parallel()

			rule, ok := ruleOf(path)
			if !ok {
				t.Fatalf("%s has no rule: say in this file's table what it may depend on", path)
			}

			for _, dependency := range dependencies {
				if !rule.allows(dependency) {
					t.Errorf("%s must not depend on %s; `go mod why %s` may show the way", path, dependency, dependency)
				}
			}
		})
	}
}

func ruleOf(path string) (rule, bool) {
	for {
		if found, ok := rules[path]; ok {
			found.folder = path

			return found, true
		}

		above := strings.LastIndexByte(path, '/')
		if above < 0 {
			return rule{}, false
		}

		path = path[:above]
	}
}

func (r rule) allows(dependency string) bool {
	own, isOwn := relative(dependency)
	first, _, _ := strings.Cut(dependency, "/")

	switch {
	case isOwn:
		return !isBelowAny(own, testOnly) && (isBelow(own, r.folder) || isBelowAny(own, r.own))
	case strings.Contains(first, "."): // a host: another module
		return isBelowAny(dependency, r.modules)
	default:
		return !isBelowAny(dependency, forbidden) || isBelowAny(dependency, r.std)
	}
}

// isBelow reports whether path is folder or in it; everything is in the folder without a name, but nothing in ".".
func isBelow(path, folder string) bool {
	return folder == "" || path == folder || strings.HasPrefix(path, folder+"/")
}

func isBelowAny(path string, folders []string) bool {
	for _, folder := range folders {
		if isBelow(path, folder) {
			return true
		}
	}

	return false
}

// relative returns the path within this module, "." for its root.
func relative(importPath string) (string, bool) {
	if importPath == module {
		return ".", true
	}

	return strings.CutPrefix(importPath, module+"/")
}

// listPackages returns all that each package of this module depends on, directly or not, tests aside.
func listPackages(t *testing.T) map[string][]string {
	t.Helper()

	readFolders(t)

	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Deps", "./...")
	cmd.Dir = root

	output, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}

		t.Fatal(err)
	}

	packages := map[string][]string{}

	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var listed struct {
			ImportPath string   `json:"ImportPath"` //nolint:tagliatelle // go list's names
			Deps       []string `json:"Deps"`       //nolint:tagliatelle // likewise
		}

		err := decoder.Decode(&listed)
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			t.Fatal(err)
		}

		path, _ := relative(listed.ImportPath)
		packages[path] = listed.Deps
	}

	if len(packages["driver"]) == 0 {
		t.Fatalf("go list does not know the driver contract: %v", packages)
	}

	return packages
}

// readFolders tells go's test cache, which sees what this process reads but not what `go list` does, that the result
// depends on every file of the module.
func readFolders(t *testing.T) {
	t.Helper()

	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), ".") {
			return fs.SkipDir
		}

		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRules(t *testing.T) {
	t.Parallel()

	for _, tc := range []struct {
		path, dependency string
		want             bool
	}{
		{".", "log/slog", true},
		{".", module + "/driver", true},
		{".", module + "/drivers/memory", false},
		{".", module + "/transports/idemhttp", false},
		{".", module + "/internal/testenv", false},
		{".", "net/http", false},
		{".", "net/http/httptrace", false},
		{".", "database/sql/driver", false},
		{".", "testing", false},
		{".", "testing/synctest", false},
		{".", "github.com/redis/rueidis", false},
		{"driver", "context", true},
		{"driver", module, false},
		{"driver", "github.com/vmihailenco/msgpack/v5", false},
		{"drivers/memory", module + "/driver", true},
		{"drivers/memory", module, false},
		{"drivers/sql", "database/sql", true},
		{"drivers/sql/schema", "github.com/jmoiron/sqlx", true},
		{"drivers/sql", module + "/drivers/redis", false},
		{"drivers/sql", module + "/drivers/sql/schema", true},
		{"drivers/sql", "github.com/lib/pq", false},
		{"drivers/sql", "github.com/go-sql-driver/mysql", false},
		{"drivers/sql", "modernc.org/sqlite", false},
		{"drivers/sql", "github.com/jmoiron/sqlx/reflectx", true},
		{"conformance", "testing", true},
		{"conformance", "github.com/stretchr/testify", false},
		{"conformance", module + "/drivers/memory", false},
		{"conformance/faults", "testing", false},
		{"transports/idemhttp", "net/http", true},
		{"transports/idemhttp", "testing", false},
	} {
		rule, ok := ruleOf(tc.path)
		if got := ok && rule.allows(tc.dependency); got != tc.want {
			t.Errorf("%s may depend on %s: %t, want %t", tc.path, tc.dependency, got, tc.want)
		}
	}

	if _, ok := ruleOf("unheard/of"); ok {
		t.Error("a package without a rule has one")
	}
}
