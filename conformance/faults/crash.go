package faults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
)

// crashEnv tells a child at which point to die.
const crashEnv = "IDEM_FAULTS_CRASH_AT"

// pointsFile is the number of the file to which a child writes the points that it reaches.
const pointsFile = 3

// Crasher counts the points that a child process reaches and kills it at one
// of them. A nil Crasher does nothing. It is used concurrently.
type Crasher struct {
	at  int
	out *os.File

	mu sync.Mutex
	n  int
}

// CrasherFromEnv returns the crasher of a process that [Crash] has started,
// else nil.
func CrasherFromEnv() *Crasher {
	at, err := strconv.Atoi(os.Getenv(crashEnv))
	if err != nil {
		return nil
	}
	return &Crasher{at: at, out: os.NewFile(pointsFile, "points")}
}

// Point is a place at which the process may die. It does not return if this
// is the one: the process is gone as by kill -9, with nothing flushed,
// closed or rolled back.
func (c *Crasher) Point(name string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	_, _ = fmt.Fprintln(c.out, name)
	if c.n != c.at {
		return
	}
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
	select {} // the signal is on its way
}

// Crash runs cmd, which must be a program that uses [CrasherFromEnv], and has
// it killed at its n-th point, counted from 1; 0 kills it nowhere. It returns
// the names of the points that it reached and whether it was killed there. An error says
// that the process ended otherwise than by that or by success. The command's
// extra files are taken for the purpose.
func Crash(ctx context.Context, cmd *exec.Cmd, n int) (points []string, killed bool, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = r.Close() }()
	cmd.ExtraFiles = []*os.File{w}
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, crashEnv+"="+strconv.Itoa(n))
	err = cmd.Start()
	_ = w.Close() // the child has its own
	if err != nil {
		return nil, false, err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	for lines := bufio.NewScanner(r); lines.Scan(); {
		points = append(points, lines.Text())
	}
	err = cmd.Wait()
	if _, ok := errors.AsType[*exec.ExitError](err); ok && n > 0 && len(points) == n && cmd.ProcessState.ExitCode() == -1 {
		return points, true, nil
	}
	return points, false, errors.Join(err, ctx.Err())
}
