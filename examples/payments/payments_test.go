package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// mainEnv has the test binary be the program.
const mainEnv = "IDEM_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainEnv) != "" {
		main()
		return
	}
	m.Run()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start starts the program with a database of its own and returns its URL.
func start(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-listen", "127.0.0.1:0", "-db", filepath.Join(t.TempDir(), "payments.db"))
	cmd.Env = append(os.Environ(), mainEnv+"=yes", "GORACE=atexit_sleep_ms=10")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() })
	url, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	return strings.TrimSpace(url)
}

// browser starts a headless browser.
func browser(t *testing.T) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		t.Skip("no chromium is installed (Debian: apt-get install chromium): the page is not tried in a browser")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(1200, 900))
	ctx, cancel := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithErrorf(func(string, ...any) {})) // it is no news that a browser is newer
	t.Cleanup(cancel)
	return ctx
}

// visitor looks at the page and clicks.
type visitor struct {
	t   *testing.T
	ctx context.Context
}

// ask returns what an action does.
func ask[T any](v visitor, action chromedp.Action[T]) T {
	v.t.Helper()
	got, err := chromedp.Run(v.ctx, action)
	must(v.t, err)
	return got
}

// script returns the value of an expression in the page.
func script[T any](v visitor, expression string) T {
	v.t.Helper()
	return ask(v, chromedp.Evaluate[T](expression))
}

// click clicks on a button and waits for the answers.
func (v visitor) click(id string) {
	v.t.Helper()
	ask(v, chromedp.Click(chromedp.CSS("#"+id+":enabled")))
	ask(v, chromedp.WaitReady(chromedp.CSS(`body[data-busy="no"]`)))
}

// answer returns the status and the notes of the n-th newest answer.
func (v visitor) answer(n int) string {
	v.t.Helper()
	item := fmt.Sprintf("document.querySelectorAll('#log li')[%d].dataset.", n)
	if script[string](v, item+"replayed") == "true" {
		return script[string](v, item+"status") + " replayed"
	}
	return script[string](v, item+"status")
}

// waits reports whether the newest answer says when to come back.
func (v visitor) waits() bool {
	v.t.Helper()
	return script[string](v, "document.querySelector('#log li').dataset.retry") != ""
}

func (v visitor) charges() int {
	v.t.Helper()
	return script[int](v, "document.querySelectorAll('#charges tr').length")
}

func (v visitor) process() int {
	v.t.Helper()
	n, err := strconv.Atoi(ask(v, chromedp.Text(chromedp.CSS("#process"))))
	must(v.t, err)
	return n
}

// want checks the newest answers and the number of charges since the last check.
func (v visitor) want(what string, before *int, charges int, answers ...string) {
	v.t.Helper()
	for i, want := range answers {
		if got := v.answer(i); got != want {
			v.t.Errorf("%s: answer %d is %q, want %q", what, i, got, want)
		}
	}
	now := v.charges()
	if now-*before != charges {
		v.t.Errorf("%s: %d charges, want %d", what, now-*before, charges)
	}
	*before = now
}

func TestPageShowsWhatEachGuaranteeMakesOfRetriesAndCrashes(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a browser, and waits for leases")
	}
	t.Parallel()
	ctx := browser(t)
	url := start(t)
	v := visitor{t, ctx}
	ask(v, chromedp.Navigate(url))
	ask(v, chromedp.WaitReady(chromedp.CSS("#process:not(:empty)")))
	for _, row := range []struct {
		guarantee string
		charges   int    // by the retry after the crash
		total     int    // in the crash and after it
		answer    string // to the retry
	}{
		{"ExactlyOnce", 1, 1, "201"},
		{"AtLeastOnce", 1, 2, "201"},
		{"AtMostOnce", 0, 1, "409"},
	} {
		ask(v, chromedp.SetValue(chromedp.CSS("#guarantee"), row.guarantee))
		n := v.charges()
		v.click("send")
		v.want(row.guarantee+", sent", &n, 1, "201")
		v.click("retry")
		v.want(row.guarantee+", retried", &n, 0, "201 replayed")
		v.click("change")
		v.want(row.guarantee+", changed", &n, 0, "422")
		v.click("double")
		if a, b := v.answer(0), v.answer(1); (a == "201") == (b == "201") || !strings.HasPrefix(a, "201") || !strings.HasPrefix(b, "201") {
			t.Errorf("%s, double-clicked: %q and %q", row.guarantee, a, b)
		}
		v.want(row.guarantee+", double-clicked", &n, 1)
		process := v.process()
		v.click("crash")
		v.want(row.guarantee+", crashed", &n, row.total-row.charges, "no answer")
		if v.process() == process {
			t.Error("the process has not died")
		}
		v.click("retry")
		for began := time.Now(); v.waits() && time.Since(began) < time.Minute; { // for the lease of the dead
			v.click("retry")
		}
		v.want(row.guarantee+", retried after the crash", &n, row.charges, row.answer)
	}
	if path := os.Getenv("IDEM_TEST_SCREENSHOT"); path != "" {
		must(t, os.WriteFile(path, ask(v, chromedp.FullScreenshot(100)), 0o600))
	}
}
