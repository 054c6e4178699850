package faults_test

import (
	"bufio"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem/conformance/faults"
)

// echo is a server that answers each line with itself, and counts the bytes that it got.
func echo(t *testing.T) (addr string, got *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	got = new(atomic.Int64)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for r := bufio.NewReader(c); ; {
					b, err := r.ReadByte()
					if err != nil {
						return
					}
					got.Add(1)
					if b == '\n' {
						_, _ = c.Write([]byte("hello\n"))
					}
				}
			}()
		}
	}()
	return l.Addr().String(), got
}

func proxied(t *testing.T) (*faults.Proxy, net.Conn, *atomic.Int64) {
	t.Helper()
	addr, got := echo(t)
	p, err := faults.NewProxy(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return p, c, got
}

func ask(c net.Conn) (string, error) {
	if _, err := fmt.Fprintln(c, "hello"); err != nil {
		return "", err
	}
	var answer string
	_, err := fmt.Fscanln(c, &answer)
	return answer, err
}

func TestProxyCutsWhereItIsTold(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		at       faults.Direction
		fault    faults.Fault
		arrives  int64  // at the server, of the second message
		answered string // to the client
	}{
		{faults.ToServer, faults.CutBefore, 0, ""},
		{faults.ToServer, faults.CutWithin, 3, ""},
		{faults.ToServer, faults.CutAfter, 6, ""},
		{faults.ToClient, faults.CutBefore, 6, ""},
		{faults.ToClient, faults.CutWithin, 6, "hel"},
		{faults.ToClient, faults.CutAfter, 6, "hello"},
	} {
		p, c, got := proxied(t)
		p.Handle(func(m faults.Message) faults.Fault {
			if m.Direction == tc.at && m.N == 2 {
				return tc.fault
			}
			return faults.Pass
		})
		if answer, err := ask(c); err != nil || answer != "hello" {
			t.Fatal(answer, err)
		}
		if answer, _ := ask(c); answer != tc.answered {
			t.Errorf("%+v: the client has %q", tc, answer)
		}
		if _, err := bufio.NewReader(c).ReadByte(); err == nil {
			t.Errorf("%+v: the connection still answers", tc)
		}
		for deadline := time.Now().Add(5 * time.Second); got.Load() < 6+tc.arrives && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		if n := got.Load() - 6; n != tc.arrives {
			t.Errorf("%+v: %d bytes arrive", tc, n)
		}
	}
}

func TestProxyStallsUntilItIsCut(t *testing.T) {
	t.Parallel()
	p, c, _ := proxied(t)
	stalled := make(chan struct{})
	p.Handle(func(faults.Message) faults.Fault { close(stalled); return faults.Stall })
	failed := make(chan error)
	go func() { _, err := ask(c); failed <- err }()
	<-stalled
	select {
	case err := <-failed:
		t.Fatalf("the stalled call ended: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	p.Cut()
	if err := <-failed; err == nil {
		t.Error("the cut connection answers")
	}
}

func TestProxyCountsRoundTrips(t *testing.T) {
	t.Parallel()
	p, c, _ := proxied(t)
	for range 3 {
		if answer, err := ask(c); err != nil || answer != "hello" {
			t.Fatal(answer, err)
		}
	}
	if n := p.RoundTrips(); n != 3 {
		t.Errorf("%d round trips, want 3", n)
	}
}
