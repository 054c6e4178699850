package idemredis_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/redis/rueidis"
)

// proxy stands between a client and a server. It sees every command, and may
// do something else with it than to pass it on.
type proxy struct {
	t        testing.TB
	listener net.Listener
	server   string

	mu       sync.Mutex
	muted    bool
	seen     [][]string
	handle   func(command []string) action
	conns    map[net.Conn]struct{}
	handlers sync.WaitGroup
}

// action is what becomes of a command; zero: it is passed on.
type action struct {
	before bool   // the connection breaks before the server has it
	after  bool   // the connection breaks when the server has answered
	reply  string // instead of the server's answer
}

// through is a client of the server through a proxy.
func through(t testing.TB, o rueidis.ClientOption) (rueidis.Client, *proxy) {
	t.Helper()
	p := proxyOf(t, o.InitAddress[0])
	o.InitAddress = []string{p.listener.Addr().String()}
	o.ForceSingleClient, o.PipelineMultiplex = true, -1
	return dial(t, o), p
}

func proxyOf(t testing.TB, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &proxy{t: t, listener: l, server: server, conns: make(map[net.Conn]struct{})}
	go p.accept()
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
		p.handlers.Wait()
	})
	return p
}

// mute swallows what the server says from now on.
func (p *proxy) mute() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.muted = true
}

func (p *proxy) isMuted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.muted
}

// on says what becomes of commands from now on.
func (p *proxy) on(handle func(command []string) action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handle = handle
}

// of are the commands that f sends.
func (p *proxy) of(f func()) [][]string {
	p.mu.Lock()
	p.seen = nil
	p.mu.Unlock()
	f()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}

// names are the first words of the commands that f sends.
func (p *proxy) names(f func()) string {
	var names []string
	for _, c := range p.of(f) {
		names = append(names, c[0])
	}
	return strings.Join(names, " ")
}

// cut breaks all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.handlers.Go(func() { p.serve(c) })
	}
}

func (p *proxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	p.conns[client] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.conns, client)
		p.mu.Unlock()
	}()
	// Replies of one connection pass through here, so that some can be held back.
	var mu sync.Mutex
	silent := false
	back := make(chan struct{})
	go func() {
		defer close(back)
		buffer := make([]byte, 1<<16)
		for {
			n, err := server.Read(buffer)
			mu.Lock()
			if silent && n > 0 { // the answer is there: now the connection breaks
				_ = client.Close()
			} else if n > 0 && !p.isMuted() {
				_, _ = client.Write(buffer[:n])
			}
			mu.Unlock()
			if err != nil {
				_ = client.Close()
				return
			}
		}
	}()
	in := bufio.NewReader(client)
	for {
		raw, command, err := readCommand(in)
		if err != nil {
			break
		}
		a := p.decide(command)
		if a.before {
			break
		}
		mu.Lock()
		silent = silent || a.after
		if a.reply != "" {
			_, _ = io.WriteString(client, a.reply+"\r\n")
		}
		mu.Unlock()
		if a.reply == "" {
			_, _ = server.Write(raw)
		}
	}
	_ = client.Close()
	_ = server.Close()
	<-back
}

func (p *proxy) decide(command []string) action {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, command)
	if p.handle == nil {
		return action{}
	}
	return p.handle(command)
}

// readCommand reads an array of strings, as it is and parsed.
func readCommand(in *bufio.Reader) (raw []byte, command []string, err error) {
	var b bytes.Buffer
	n, err := readLength(in, &b, '*')
	if err != nil {
		return nil, nil, err
	}
	for range n {
		size, err := readLength(in, &b, '$')
		if err != nil {
			return nil, nil, err
		}
		arg := make([]byte, size+2)
		if _, err := io.ReadFull(in, arg); err != nil {
			return nil, nil, err
		}
		b.Write(arg)
		command = append(command, string(arg[:size]))
	}
	return b.Bytes(), command, nil
}

func readLength(in *bufio.Reader, b *bytes.Buffer, mark byte) (n int, err error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	b.WriteString(line)
	if line[0] != mark {
		return 0, fmt.Errorf("%q is no command", line)
	}
	_, err = fmt.Sscanf(line[1:], "%d", &n)
	return n, err
}
