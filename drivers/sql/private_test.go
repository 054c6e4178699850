package idemsql_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/idem-go/idem/internal/testenv"
)

// private is a server of a test's own, which it may kill.
type private struct {
	t     *testing.T
	name  string
	tree  string // a checkout that has only the scripts
	state string // the server's folder
	dsn   string
}

var exported = regexp.MustCompile(`(?m)^export IDEM_TEST_[A-Z]+='(.*)'$`)

// newPrivate starts a server by the scripts that start the shared ones.
func newPrivate(t *testing.T, name string) *private {
	t.Helper()
	testenv.Backend(t, testenv.Name(name))
	root, err := filepath.Abs("../..")
	must(t, err)
	shared := servicesState(root)
	if _, err := os.Stat(filepath.Join(shared, name, "pid")); err != nil {
		t.Skip("the servers were not started by scripts/services, so there is no telling how to start another one")
	}
	tree, err := os.MkdirTemp("", "idem-private-") //nolint:usetesting // the servers' user must get there
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(tree) })
	must(t, os.Chmod(tree, 0o755))
	must(t, os.CopyFS(filepath.Join(tree, "scripts"), os.DirFS(filepath.Join(root, "scripts"))))
	must(t, os.Chmod(filepath.Join(tree, "scripts", "services"), 0o755))
	p := &private{t: t, name: name, tree: tree, state: filepath.Join(tree, ".services", name)}
	if unpacked := filepath.Join(shared, name, "unstable"); exists(unpacked) {
		must(t, os.MkdirAll(p.state, 0o755))
		must(t, os.Symlink(unpacked, filepath.Join(p.state, "unstable")))
	}
	t.Cleanup(func() { _, _ = p.services("down") })
	p.up()
	return p
}

func servicesState(root string) string {
	if location, err := os.ReadFile(filepath.Join(root, ".services", "location")); err == nil {
		return strings.TrimSpace(string(location))
	}
	return filepath.Join(root, ".services")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// up starts the server, or starts it again.
func (p *private) up() {
	p.t.Helper()
	if out, err := p.services("up"); err != nil {
		p.t.Fatalf("%s does not start: %v\n%s", p.name, err, out)
	}
	out, err := p.services("env")
	m := exported.FindStringSubmatch(out)
	if err != nil || m == nil {
		p.t.Fatalf("%s is nowhere: %v\n%s", p.name, err, out)
	}
	p.dsn = m[1]
}

func (p *private) services(verb string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(p.tree, "scripts", "services"), verb, p.name)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "IDEM_TEST_") { // or the shared server would be taken for it
			cmd.Env = append(cmd.Env, v)
		}
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// kill ends the server as a power failure would end its processes.
func (p *private) kill() {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.state, "pid"))
	must(p.t, err)
	pid, err := strconv.Atoi(strings.Fields(string(text))[0])
	must(p.t, err)
	list, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	must(p.t, syscall.Kill(pid, syscall.SIGKILL))
	for child := range strings.FieldsSeq(string(list)) {
		if n, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
	}
	// It is to come back at its port, which must be free by then.
	addr, _ := addressed(p.t, p.dsn)
	for {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			return
		}
		_ = c.Close()
		time.Sleep(time.Millisecond)
	}
}
