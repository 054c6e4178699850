package conformance

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
)

// recorder is the [testing.TB] of one case. It keeps what happens to itself, so
// that a case that must fail can fail without failing the test.
type recorder struct {
	testing.TB // for what does not report: TempDir, Setenv, …

	ctx    context.Context
	cancel context.CancelFunc

	mu       sync.Mutex
	lines    []string
	failed   bool
	skipped  bool
	cleanups []func()
}

// record runs f to its end, whatever that is, and then its cleanups.
func record(t testing.TB, f func(r *recorder)) *recorder {
	r := &recorder{TB: t}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.cleanup()
		returned := false
		defer func() {
			if !returned && !r.Skipped() { // also a Goexit that the driver called
				r.Fail()
			}
		}()
		defer r.catch()
		f(r)
		returned = true
	}()
	<-done
	return r
}

// catch turns a panic into a failure.
func (r *recorder) catch() {
	if v := recover(); v != nil {
		r.Errorf("panic: %v\n%s", v, debug.Stack())
	}
}

func (r *recorder) cleanup() {
	r.cancel()
	r.mu.Lock()
	n := len(r.cleanups)
	if n == 0 {
		r.mu.Unlock()
		return
	}
	f := r.cleanups[n-1]
	r.cleanups = slices.Delete(r.cleanups, n-1, n)
	r.mu.Unlock()
	defer r.cleanup() // also if f calls FailNow
	defer r.catch()
	f()
}

func (r *recorder) log(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, strings.TrimSuffix(s, "\n"))
}

// text is all that was logged, without repetitions.
func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(slices.Compact(r.lines), "\n")
}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

func (r *recorder) Context() context.Context { return r.ctx }
func (r *recorder) Helper()                  {}

func (r *recorder) Log(args ...any)              { r.log(fmt.Sprintln(args...)) }
func (r *recorder) Logf(f string, args ...any)   { r.log(fmt.Sprintf(f, args...)) }
func (r *recorder) Error(args ...any)            { r.Log(args...); r.Fail() }
func (r *recorder) Errorf(f string, args ...any) { r.Logf(f, args...); r.Fail() }
func (r *recorder) Fatal(args ...any)            { r.Log(args...); r.FailNow() }
func (r *recorder) Fatalf(f string, args ...any) { r.Logf(f, args...); r.FailNow() }
func (r *recorder) Skip(args ...any)             { r.Log(args...); r.SkipNow() }
func (r *recorder) Skipf(f string, args ...any)  { r.Logf(f, args...); r.SkipNow() }

func (r *recorder) Fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

func (r *recorder) FailNow() {
	r.Fail()
	runtime.Goexit()
}

func (r *recorder) SkipNow() {
	r.mu.Lock()
	r.skipped = true
	r.mu.Unlock()
	runtime.Goexit()
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Skipped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.skipped
}
