package idemhttp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/transports/idemhttp"
	"github.com/idem-go/idem/transports/idemhttp/internal/rules"
)

// childEnv has the test binary serve in a process of its own.
const childEnv = "IDEM_TEST_SERVE"

// child is a server in a process of its own. Its handler writes a line into the ledger: the effect.
type child struct {
	Where     place          `json:"where"`
	Guarantee idem.Guarantee `json:"guarantee"`
	Ledger    string         `json:"ledger"`
}

// serveChild serves until its standard input ends, and prints where.
func serveChild(spec string) error {
	var c child
	if err := json.Unmarshal([]byte(spec), &c); err != nil {
		return err
	}
	store, shut, err := c.Where.open(context.Background())
	if err != nil {
		return err
	}
	defer shut()
	op, err := idem.NewOperation("payments", store, c.Guarantee, idem.WithLogger(quiet))
	if err != nil {
		return err
	}
	protect, err := idemhttp.New(op, idemhttp.WithoutPrincipal(), idemhttp.WithLogger(quiet))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           protect(http.HandlerFunc(c.pay)),
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	_, _ = fmt.Fprintln(os.Stdout, listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (c child) pay(w http.ResponseWriter, r *http.Request) {
	f, err := os.OpenFile(c.Ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	_, _ = f.WriteString(r.Header.Get("Idempotency-Key") + "\n")
	_ = f.Close()
	time.Sleep(20 * time.Millisecond) // a charge takes its time
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, strconv.Itoa(os.Getpid()))
}

// start starts the server and returns its URL.
func (c child) start(t *testing.T) string {
	t.Helper()
	spec, err := json.Marshal(c)
	must(t, err)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(spec), "GORACE=atexit_sleep_ms=10")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	in, err := cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	address, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	return "http://" + strings.TrimSpace(address)
}

func TestConcurrentDuplicatesOverFourProcessesHaveOneEffect(t *testing.T) {
	t.Parallel()
	const processes, keys, duplicates = 4, 5, 3
	for _, st := range stores {
		for _, g := range st.guarantees {
			if st.name == "memory" {
				continue
			}
			t.Run(fmt.Sprintf("%s/%v", st.name, g), func(t *testing.T) {
				t.Parallel()
				c := child{st.place(t), g, filepath.Join(t.TempDir(), "ledger")}
				c.Where.forTest(t)
				var urls []string
				for range processes {
					urls = append(urls, c.start(t))
				}
				client := &http.Client{Transport: &http.Transport{}}
				t.Cleanup(client.CloseIdleConnections)
				var all sync.WaitGroup
				answers := make([][]string, keys)
				var mu sync.Mutex
				for i := range keys * duplicates * processes {
					all.Go(func() {
						key := i % keys
						a := untilDecided(t, client, urls[i/keys%processes], "k-"+strconv.Itoa(key))
						mu.Lock()
						defer mu.Unlock()
						answers[key] = append(answers[key], a.Body)
					})
				}
				all.Wait()
				for key, bodies := range answers {
					for _, body := range bodies {
						if body != bodies[0] {
							t.Errorf("k-%d was answered %q and %q", key, bodies[0], body)
						}
					}
				}
				ledger, err := os.ReadFile(c.Ledger)
				must(t, err)
				if n := strings.Count(string(ledger), "\n"); n != keys {
					t.Errorf("%d effects of %d keys:\n%s", n, keys, ledger)
				}
			})
		}
	}
}

// untilDecided sends a duplicate until it is told neither that another runs nor that the store is busy.
func untilDecided(t *testing.T, client *http.Client, url, key string) rules.Answer {
	t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("500"))
		if err != nil {
			t.Error(err)
			return rules.Answer{}
		}
		r.Header.Set("Idempotency-Key", key)
		res, err := client.Do(r)
		if err != nil {
			t.Error(err)
			return rules.Answer{}
		}
		body, err := io.ReadAll(res.Body)
		if err := errors.Join(err, res.Body.Close()); err != nil {
			t.Error(err)
		}
		a := rules.Answer{Status: res.StatusCode, Header: res.Header, Body: string(body)}
		a.WantNothingInternal(t)
		switch {
		case res.StatusCode == http.StatusCreated:
			return a
		case res.StatusCode != http.StatusConflict && res.StatusCode != http.StatusServiceUnavailable:
			t.Errorf("%+v", a)
			return a
		case res.Header.Get("Retry-After") == "":
			t.Errorf("a duplicate of what runs is not told when to come back: %+v", a)
		}
		time.Sleep(5 * time.Millisecond) // sooner than it is told, for the test's sake
	}
	t.Error("no decision within a minute")
	return rules.Answer{}
}
