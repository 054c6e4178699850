package idemredis_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// server is a process of its own, for what the shared server cannot be used
// for: settings, and its end.
type server struct {
	t     testing.TB
	dir   string
	port  int
	first []string // arguments before all others: a file of settings
	args  []string
	cmd   *exec.Cmd
}

// durable are the settings of a server that keeps what it acknowledges.
var durable = []string{"--appendonly", "yes", "--appendfsync", "always"}

// spawn starts a server and stops it when the test ends.
func spawn(t testing.TB, args ...string) *server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("redis-server is not in the path: this test starts servers of its own")
	}
	s := &server{t: t, dir: t.TempDir(), port: freePort(t), args: args}
	t.Cleanup(s.kill)
	s.start()
	return s
}

func freePort(t testing.TB) int {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		port := l.Addr().(*net.TCPAddr).Port
		must(t, l.Close())
		if port < 55000 { // a cluster's bus takes the port that is 10,000 higher
			return port
		}
	}
}

func (s *server) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

func (s *server) start() {
	s.t.Helper()
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(s.t, err)
	defer func() { _ = log.Close() }()
	args := append(slices.Clone(s.first), "--bind", "127.0.0.1", "--port", strconv.Itoa(s.port), "--dir", s.dir, "--save", "")
	args = append(args, s.args...)
	s.cmd = exec.CommandContext(context.Background(), "redis-server", args...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	must(s.t, s.cmd.Start())
	s.await()
}

// await waits until the server answers.
func (s *server) await() {
	s.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if ping(s.addr()) == nil {
			return
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			s.t.Fatalf("the server does not answer:\n%s", text)
		}
	}
}

// ping asks without a client of its own, which would try for longer.
func ping(addr string) error {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err = c.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	answer := make([]byte, 7)
	if _, err = c.Read(answer); err == nil && string(answer) != "+PONG\r\n" {
		err = errors.New(string(answer))
	}
	return err
}

// kill ends the process as a crash would.
func (s *server) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

func (s *server) options() rueidis.ClientOption {
	return small(rueidis.ClientOption{InitAddress: []string{s.addr()}, ForceSingleClient: true})
}

func (s *server) dial() rueidis.Client {
	s.t.Helper()
	return dial(s.t, s.options())
}

// do sends a command and wants it to succeed.
func do(t testing.TB, c rueidis.Client, words ...string) rueidis.RedisResult {
	t.Helper()
	res := c.Do(t.Context(), c.B().Arbitrary(words...).Build())
	if err := res.Error(); err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("%v: %v", words, err)
	}
	return res
}
