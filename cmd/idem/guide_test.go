package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFileInTheGuideIsValid(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/gateway.md")
	must(t, err)
	_, rest, found := strings.Cut(string(guide), "```yaml\n")
	example, _, _ := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the guide shows no file")
	}
	path := filepath.Join(t.TempDir(), "idem.yaml")
	must(t, os.WriteFile(path, []byte(example), 0o600))
	c, err := configure([]string{"-config", path, "-listen", "127.0.0.1:1"}, io.Discard)
	must(t, err)
	if c.Listen != "127.0.0.1:1" || c.Upstream == "" || len(c.Routes) < 2 || c.Routes[0].Match == "" {
		t.Errorf("%+v", c)
	}
}
