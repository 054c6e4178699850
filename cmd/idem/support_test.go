package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// commandEnv has the test binary be the command.
const commandEnv = "IDEM_TEST_COMMAND"

func TestMain(m *testing.M) {
	if args := os.Getenv(commandEnv); args != "" {
		var list []string
		if err := json.Unmarshal([]byte(args), &list); err != nil {
			panic(err)
		}
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		code := run(ctx, list, os.Stderr)
		stop()
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// upstream starts the Python service and returns its URL.
func upstream(t *testing.T) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed: there is no service to put the gateway in front of")
	}
	cmd := exec.CommandContext(t.Context(), python, "testdata/upstream.py", "0")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() })
	port, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	return "http://127.0.0.1:" + strings.TrimSpace(port)
}

// process is a gateway in a process of its own.
type process struct {
	t          *testing.T
	args       []string
	cmd        *exec.Cmd
	over       chan error
	url, admin string
}

// start starts a gateway with a SQLite file of its own, and waits until it is ready.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{t: t, args: append([]string{
		"serve", "-listen", freeAddress(t), "-admin", freeAddress(t), "-store", "sqlite:" + filepath.Join(t.TempDir(), "idem.db"), "-principal", "none",
	}, args...)}
	p.url, p.admin = "http://"+p.args[2], "http://"+p.args[4]
	p.restart()
	t.Cleanup(p.kill)
	return p
}

// freeAddress returns an address that was free a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, l.Close())
	return l.Addr().String()
}

// restart starts the process anew, with the same store and addresses.
func (p *process) restart() {
	p.t.Helper()
	args, err := json.Marshal(p.args)
	must(p.t, err)
	p.cmd = exec.CommandContext(context.Background(), os.Args[0])
	p.cmd.Env = append(os.Environ(), commandEnv+"="+string(args), "GORACE=atexit_sleep_ms=10")
	p.cmd.Stderr = p.t.Output()
	must(p.t, p.cmd.Start())
	p.over = make(chan error, 1)
	go func(cmd *exec.Cmd, over chan error) { over <- cmd.Wait() }(p.cmd, p.over)
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(10 * time.Millisecond) {
		if a, err := get(p.t, p.admin+"/readyz"); err == nil && a.status == http.StatusOK {
			return
		}
		select {
		case err := <-p.over:
			p.t.Fatalf("the gateway has ended: %v", err)
		default:
		}
	}
	p.t.Fatal("the gateway is not ready after a minute")
}

// kill ends the process as a crash would.
func (p *process) kill() {
	if p.cmd.Process.Kill() == nil {
		p.t.Log("the gateway has ended:", <-p.over)
	}
}

type answer struct {
	status int
	header http.Header
	body   string
}

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func get(t *testing.T, url string) (answer, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	must(t, err)
	return do(r)
}

func do(r *http.Request) (answer, error) {
	res, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	body, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(body)}, errors.Join(err, res.Body.Close())
}

// post sends a request with a key to the gateway.
func (p *process) post(path, key, body string) answer {
	p.t.Helper()
	a, err := p.try(p.t.Context(), path, key, body)
	must(p.t, err)
	return a
}

func (p *process) try(ctx context.Context, path, key, body string) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Idempotency-Key", key)
	return do(r)
}

// arrived returns how many requests have reached the service at the path.
func arrived(t *testing.T, upstream, path string) string {
	t.Helper()
	a, err := get(t, upstream+"/arrived"+path)
	must(t, err)
	return a.body
}

// awaitArrival waits until a request has reached the service.
func awaitArrival(t *testing.T, upstream, path string) {
	t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(time.Millisecond) {
		if arrived(t, upstream, path) != "0" {
			return
		}
	}
	t.Fatal("nothing arrives at", path)
}
