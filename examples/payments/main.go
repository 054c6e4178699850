// Command payments is a payment API with a page that shows what happens to a
// payment that is sent twice, changed, or in the middle of which the server dies.
//
//	go run .
//
// and open the address that it prints.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	address := flag.String("listen", "127.0.0.1:8088", "where the page is")
	database := flag.String("db", "payments.db", "a SQLite file")
	child := flag.Bool("child", false, "serve on the socket that is open as file 3, as the process that may die")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if *child {
		err = serve(ctx, *database)
	} else {
		err = supervise(ctx, *address, *database)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "payments:", err)
		os.Exit(1)
	}
}

// supervise keeps a server running in a process of its own, until ctx ends. The socket stays open while it is started anew.
func supervise(ctx context.Context, address, database string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer listener.Close()
	socket, err := listener.(*net.TCPListener).File() //nolint:forcetypeassert // it listens on TCP
	if err != nil {
		return err
	}
	defer socket.Close()
	fmt.Printf("http://%s\n", listener.Addr())
	for ctx.Err() == nil {
		cmd := exec.CommandContext(ctx, os.Args[0], "-child", "-db", database) //nolint:gosec // this program itself
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.ExtraFiles = []*os.File{socket}
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		err := cmd.Run()
		if ctx.Err() != nil {
			break
		}
		fmt.Println("the server has ended:", err)
		time.Sleep(100 * time.Millisecond) // so that one that cannot start does not keep the machine busy
	}
	return nil
}

// serve answers on the supervisor's socket until ctx ends.
func serve(ctx context.Context, database string) error {
	socket := os.NewFile(3, "socket")
	listener, err := net.FileListener(socket)
	if err != nil {
		return fmt.Errorf("there is no supervisor: leave -child out (%w)", err)
	}
	app, err := open(ctx, database)
	if err != nil {
		return err
	}
	defer app.db.Close()
	server := &http.Server{Handler: app.routes(), ReadHeaderTimeout: 5 * time.Second}
	// A browser sends a request again by itself if a connection that it has used before breaks. Here the page does it.
	server.SetKeepAlivesEnabled(false)
	end := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer end()
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}
