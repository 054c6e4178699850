package faults

import (
	"errors"
	"io"
	"net"
	"sync"
)

// Direction is where a message goes.
type Direction uint8

// The directions.
const (
	ToServer Direction = 1
	ToClient Direction = 2
)

// Message is what one side sent at once. Between a client and a server that
// take turns it is a request or an answer; a long one may come in parts.
type Message struct {
	Direction Direction
	N         int // counted from 1 in its direction since [Proxy.Handle]
	Data      []byte
}

// Fault is what becomes of a message.
type Fault uint8

// The faults; zero is none.
const (
	Pass      Fault = 0
	CutBefore Fault = 1 // the connection breaks, and nothing of the message arrives
	CutWithin Fault = 2 // it breaks when half of the message has arrived
	CutAfter  Fault = 3 // it breaks when all of the message has arrived
	Stall     Fault = 4 // nothing arrives any more, and nothing breaks until [Proxy.Cut] or [Proxy.Close]
)

// Proxy stands between clients and a server, and breaks their connections as
// it is told. It is used concurrently.
type Proxy struct {
	listener net.Listener
	target   string
	all      sync.WaitGroup

	mu     sync.Mutex
	closed bool
	links  map[*link]struct{}
	handle func(Message) Fault
	counts [ToClient + 1]int
	trips  int
}

// link is one connection of a client, and the one to the server that goes with it.
type link struct {
	client, server net.Conn
	answered, dead bool // the server was the last to send; nothing more arrives; both under the proxy's lock
	once           sync.Once
	cut            chan struct{}
}

// NewProxy returns a proxy on a local port for the server at target, a host
// and a port. [Proxy.Close] ends it.
func NewProxy(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is over at once
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, target: target, links: map[*link]struct{}{}}
	p.all.Go(p.accept)
	return p, nil
}

// Addr is where clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Handle has f decide on every message from now on, one at a time; nil passes all.
func (p *Proxy) Handle(f func(Message) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handle, p.counts = f, [ToClient + 1]int{}
}

// RoundTrips is how often a client has sent something after an answer, or as
// the first, since the proxy was made.
func (p *Proxy) RoundTrips() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.trips
}

// Cut breaks all connections that there are.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.end()
	}
}

// Close breaks all connections, takes no more, and waits until they have ended.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	err := p.listener.Close()
	p.Cut()
	p.all.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			p.all.Go(func() { p.serve(client) })
		}
	}
}

func (p *Proxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.target) //nolint:noctx // Close does not wait for long on a local server
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{client: client, server: server, answered: true, cut: make(chan struct{})}
	p.mu.Lock()
	p.links[l] = struct{}{}
	if p.closed {
		l.end()
	}
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.pump(l, ToServer, client, server) })
	both.Go(func() { p.pump(l, ToClient, server, client) })
	both.Wait()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// pump passes on what comes from one side, until either has ended.
func (p *Proxy) pump(l *link, d Direction, from io.Reader, to io.Writer) {
	defer l.end()
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !p.pass(l, Message{Direction: d, Data: buffer[:n]}, to) || err != nil {
			return
		}
	}
}

func (p *Proxy) pass(l *link, m Message, to io.Writer) bool {
	fault := p.judge(l, &m)
	data := m.Data
	switch fault {
	case CutBefore:
		return false
	case CutWithin:
		data = data[:len(data)/2]
	case Stall:
		<-l.cut
		return false
	case Pass, CutAfter:
	}
	_, err := to.Write(data)
	return err == nil && fault == Pass
}

func (p *Proxy) judge(l *link, m *Message) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.Direction == ToServer && l.answered {
		p.trips++
	}
	l.answered = m.Direction == ToClient
	p.counts[m.Direction]++
	m.N = p.counts[m.Direction]
	if l.dead {
		return CutBefore
	}
	fault := Pass
	if p.handle != nil {
		fault = p.handle(*m)
	}
	l.dead = fault != Pass
	return fault
}

func (l *link) end() {
	l.once.Do(func() {
		close(l.cut)
		_ = l.client.Close()
		_ = l.server.Close()
	})
}
