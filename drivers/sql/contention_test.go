package idemsql_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/driver"
	idemsql "github.com/idem-go/idem/drivers/sql"
)

// contendEnv makes the test binary a process that contends for keys.
const contendEnv = "IDEMSQL_TEST_CONTEND"

// keysEnv is how many keys they contend for, instead of 100.
const keysEnv = "IDEM_TEST_KEYS"

// contenders is how many processes contend.
const contenders = 4

// contendSpec is what a contending process does.
type contendSpec struct {
	Driver     string         `json:"driver"`
	DSN        string         `json:"dsn"`
	Table      string         `json:"table"`
	Guarantee  idem.Guarantee `json:"guarantee"`
	Goroutines int            `json:"goroutines"`
	Keys       int            `json:"keys"`
}

// contendReport is what it tells at its end.
type contendReport struct {
	Ran      int      `json:"ran"`      // functions
	InFlight int      `json:"inFlight"` // errors that say so
	Errors   []string `json:"errors"`   // the others
}

// contendProcess waits for a line, so that all processes begin at once.
func contendProcess(spec string) int {
	var c contendSpec
	if err := json.Unmarshal([]byte(spec), &c); err != nil {
		return exitCode(err)
	}
	db, err := sqlx.Open(c.Driver, c.DSN)
	if err != nil {
		return exitCode(err)
	}
	db.SetMaxOpenConns(20)
	db.SetMaxIdleConns(20)
	store, err := idemsql.New(db, idemsql.WithTable(c.Table), idemsql.WithSweep(16))
	if err != nil {
		return exitCode(err)
	}
	op, err := idem.NewOperation("contention", store, c.Guarantee)
	if err != nil {
		return exitCode(err)
	}
	_, _ = fmt.Fprintln(os.Stdout, "ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return exitCode(json.NewEncoder(os.Stdout).Encode(c.contend(op, db)))
}

// contend calls every key from every goroutine, or one key from all of them.
func (c contendSpec) contend(op *idem.Operation, db *sqlx.DB) (report contendReport) {
	b := &bundle{table: c.Table, db: db}
	var mu sync.Mutex
	var all sync.WaitGroup
	for g := range c.Goroutines {
		all.Go(func() {
			for i := range c.Keys {
				key := strconv.Itoa((i + g*17) % c.Keys)
				_, err := idem.Execute(context.Background(), key, func(ctx context.Context) (string, error) {
					mu.Lock()
					report.Ran++
					mu.Unlock()
					if c.Guarantee == idem.ExactlyOnce {
						return key, b.write(key)(ctx)
					}
					_, err := db.ExecContext(ctx, db.Rebind("INSERT INTO "+c.Table+"_effects (id) VALUES (?)"), key)
					return key, err
				}, idem.On(op))
				mu.Lock()
				switch {
				case err == nil:
				case errors.Is(err, idem.ErrInProgress):
					report.InFlight++
				case len(report.Errors) < 10:
					report.Errors = append(report.Errors, err.Error())
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return report
}

// TestContention has four processes contend: on one key, and on many.
// Each function runs once, and nobody meets another error than that a key is in flight.
func TestContention(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, s server) {
		t.Helper()
		for _, g := range []idem.Guarantee{idem.AtLeastOnce, idem.ExactlyOnce} {
			for what, c := range map[string]contendSpec{
				"one key":   {Goroutines: 50, Keys: 1},
				"many keys": {Goroutines: 16, Keys: number(t, keysEnv, 100)},
			} {
				for _, takeover := range []bool{false, true} {
					t.Run(fmt.Sprintf("%v/%s/takeover %v", g, what, takeover), func(t *testing.T) {
						b := s.open(t)
						c.Driver, c.DSN, c.Table, c.Guarantee = s.driver, b.path, b.table, g
						if takeover {
							b.lapse(c.Keys)
						}
						c.run(t, b)
					})
				}
			}
		}
	})
}

// number is n, or what the environment says.
func number(t *testing.T, variable string, n int) int {
	t.Helper()
	if env := os.Getenv(variable); env != "" {
		var err error
		n, err = strconv.Atoi(env)
		must(t, err)
	}
	return n
}

// lapse leaves keys whose owners are gone.
func (b *bundle) lapse(n int) {
	b.t.Helper()
	for i := range n {
		p := claimOf(strconv.Itoa(i))
		p.Key.Scope, p.Lease = "contention", time.Millisecond
		b.mustClaim(p, driver.DecisionClaimed)
	}
}

func (c contendSpec) run(t *testing.T, b *bundle) {
	t.Helper()
	spec, err := json.Marshal(c)
	must(t, err)
	type process struct {
		cmd *exec.Cmd
		in  *os.File
		out *bufio.Reader
	}
	var all []process
	for range contenders {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), contendEnv+"="+string(spec))
		cmd.Stderr = os.Stderr
		r, w, err := os.Pipe()
		must(t, err)
		cmd.Stdin = r
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		_ = r.Close()
		all = append(all, process{cmd, w, bufio.NewReader(out)})
	}
	for _, p := range all {
		_, err := p.out.ReadString('\n')
		must(t, err)
	}
	began := time.Now()
	for _, p := range all {
		_ = p.in.Close() // the end of its input is the signal
	}
	var sum contendReport
	for _, p := range all {
		var r contendReport
		must(t, json.NewDecoder(p.out).Decode(&r))
		must(t, p.cmd.Wait())
		sum.Ran += r.Ran
		sum.InFlight += r.InFlight
		sum.Errors = append(sum.Errors, r.Errors...)
	}
	t.Logf("%d calls in %v, %d in flight", contenders*c.Goroutines*c.Keys, time.Since(began).Round(time.Millisecond), sum.InFlight)
	var effects, keys int
	must(t, b.db.Get(&effects, "SELECT count(*) FROM "+c.Table+"_effects"))
	must(t, b.db.Get(&keys, "SELECT count(DISTINCT id) FROM "+c.Table+"_effects"))
	// A transaction that a conflict rolled back runs its function again; its effect is there once.
	if effects != c.Keys || keys != c.Keys || c.Guarantee != idem.ExactlyOnce && sum.Ran != c.Keys {
		t.Errorf("%d functions ran, %d effects for %d keys, want %d", sum.Ran, effects, keys, c.Keys)
	}
	if len(sum.Errors) > 0 {
		t.Errorf("other errors: %q", sum.Errors)
	}
}
