package classification_test

import (
	"context"
	"net"
	"net/url"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/rueidis"

	idemredis "github.com/idem-go/idem/drivers/redis"
	"github.com/idem-go/idem/internal/testenv"
)

func dialRedis(t testing.TB, addr string, retry bool) rueidis.Client {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{addr}, ForceSingleClient: true, DisableCache: true, DisableRetry: !retry, PipelineMultiplex: -1,
		ConnWriteTimeout: 500 * time.Millisecond, Dialer: net.Dialer{Timeout: time.Second},
	})
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

// do returns the error of a command.
func do(ctx context.Context, c rueidis.Client, words ...string) error {
	return c.Do(ctx, c.B().Arbitrary(words...).Build()).Error()
}

func TestRedisErrors(t *testing.T) {
	t.Parallel()
	at, err := url.Parse(testenv.Backend(t, testenv.Redis))
	must(t, err)
	ctx, c, key := t.Context(), dialRedis(t, at.Host, false), name()
	must(t, do(ctx, c, "SET", key, "x", "PX", "60000"))
	_, dial := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{refused(t)}, ForceSingleClient: true, DisableCache: true})
	rows := table{
		"connection refused":        {dial, passing},
		"command for another type":  {do(ctx, c, "LPUSH", key, "x"), bug},
		"command not there":         {do(ctx, c, "NOSUCH"), bug},
		"too few arguments":         {do(ctx, c, "SET", key), bug},
		"script not there":          {do(ctx, c, "EVALSHA", "0000000000000000000000000000000000000000", "0"), bug},
		"script that breaks a rule": {do(ctx, c, "EVAL", "return redis.call('LPUSH', KEYS[1], 'x')", "1", key), bug},
		"nil":                       {do(ctx, c, "GET", key+"-absent"), domain},
		"value that is no number":   {do(ctx, c, "INCR", key), domain},
	}
	user := name()
	must(t, do(ctx, c, "ACL", "SETUSER", user, "on", ">secret", "+auth", "+hello", "+client", "~none"))
	t.Cleanup(func() { _ = do(context.Background(), c, "ACL", "DELUSER", user) })
	_, wrong := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{at.Host}, Username: user, Password: "x", ForceSingleClient: true, DisableCache: true})
	rows["wrong password"] = provoked{wrong, passing}
	restricted, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{at.Host}, Username: user, Password: "secret", ForceSingleClient: true, DisableCache: true})
	must(t, err)
	defer restricted.Close()
	rows["permission missing"] = provoked{do(ctx, restricted, "GET", key), passing}

	_, err = c.DoMulti(ctx, c.B().Arbitrary("SET", key, "y").Build())[0].ToString()
	must(t, err)
	blocked := dialRedis(t, at.Host, false)
	deadline := short(t)
	rows["deadline of the context"] = provoked{blocked.Do(deadline, blocked.B().Blpop().Key(key+"-list").Timeout(10).Build()).Error(), passing}
	p := newProxy(t, at.Host)
	silent := dialRedis(t, p.addr(), false)
	p.swallow()
	rows["no reply"] = provoked{do(ctx, silent, "SET", key, "z"), passing}
	p = newProxy(t, at.Host)
	cut := dialRedis(t, p.addr(), false)
	time.AfterFunc(200*time.Millisecond, p.reset)
	rows["connection reset"] = provoked{cut.Do(ctx, cut.B().Blpop().Key(key+"-list").Timeout(10).Build()).Error(), passing}
	closed := dialRedis(t, at.Host, false)
	closed.Close()
	rows["client that was closed"] = provoked{do(ctx, closed, "GET", key), passing}
	rows.check(t, idemredis.Classify)
}

func TestRedisServerErrors(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("redis-server is not in the path: this test starts servers of its own")
	}
	ctx := t.Context()
	full := dialRedis(t, spawnRedis(t), false)
	must(t, do(ctx, full, "CONFIG", "SET", "maxmemory-policy", "noeviction"))
	must(t, do(ctx, full, "CONFIG", "SET", "maxmemory", "1"))
	replica := dialRedis(t, spawnRedis(t), false)
	must(t, do(ctx, replica, "REPLICAOF", "127.0.0.1", "1"))
	alone := dialRedis(t, spawnRedis(t), false)
	must(t, do(ctx, alone, "CONFIG", "SET", "min-replicas-to-write", "1"))
	busy := spawnRedis(t)
	stuck, asking := dialRedis(t, busy, false), dialRedis(t, busy, false)
	must(t, do(ctx, stuck, "CONFIG", "SET", "busy-reply-threshold", "50"))
	done := make(chan error, 1)
	go func() { done <- do(ctx, stuck, "EVAL", "while true do end", "0") }()
	var busyErr error
	for busyErr == nil {
		busyErr = do(ctx, asking, "SET", "x", "x")
		time.Sleep(20 * time.Millisecond)
	}
	must(t, do(ctx, asking, "SCRIPT", "KILL"))
	killed := <-done
	if killed == nil {
		t.Error("the script ended by itself")
	}
	table{
		"out of memory":             {do(ctx, full, "SET", "x", "x"), passing},
		"out of memory in a script": {do(ctx, full, "EVAL", "return redis.call('SET', KEYS[1], 'x')", "1", "x"), passing},
		"read-only replica":         {do(ctx, replica, "SET", "x", "x"), passing},
		"replica without a master":  {do(ctx, dialStale(t, replica), "GET", "x"), passing},
		"too few replicas":          {do(ctx, alone, "SET", "x", "x"), passing},
		"busy with a script":        {busyErr, passing},
		"script killed":             {killed, passing},
	}.check(t, idemredis.Classify)
}

// dialStale makes a replica refuse to answer from old data.
func dialStale(t testing.TB, c rueidis.Client) rueidis.Client {
	t.Helper()
	must(t, do(t.Context(), c, "CONFIG", "SET", "replica-serve-stale-data", "no"))
	return c
}

// spawnRedis starts a server that ends with the test.
func spawnRedis(t testing.TB) string {
	t.Helper()
	addr := refused(t)
	_, port, err := net.SplitHostPort(addr)
	must(t, err)
	cmd := exec.CommandContext(context.Background(), "redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", t.TempDir(), "--save", "")
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
			return addr
		}
		time.Sleep(5 * time.Millisecond)
	}
}
