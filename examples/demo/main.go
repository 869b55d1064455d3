//go:build !js

// Demo is the demonstration: the library, its nodes and its replicas compiled to
// WebAssembly, in one page. Outside of a browser this program makes the page's files, and serves
// them if it is told where:
//
//	go run ./examples/demo                            makes them, in bin/demo
//	go run ./examples/demo -listen 127.0.0.1:8081     and serves them
//
// They are static: any server will do. In the page each replica is an instance of the module of its
// own, which stands still when it is frozen, and is gone when it is killed; see static/host.js.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Stdout, os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, say io.Writer, args []string) error {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	out := flags.String("out", "bin/demo", "`directory` of the files")
	listen := flags.String("listen", "", "`address` to serve them at; on loopback unless it has a host")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: everything is set by flags, see -help", flags.Arg(0))
	}
	size, err := build(ctx, *out)
	if err != nil {
		return err
	}
	fmt.Fprintf(say, "%s has the demonstration: %.2f MB compressed, and %.0f MB are the most\n", *out, float64(size)/1e6, maxSize/1e6)
	if *listen == "" {
		return nil
	}
	return serve(ctx, say, *out, *listen)
}

// serve serves the files until ctx ends.
func serve(ctx context.Context, say io.Writer, dir, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("-listen: %w", err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return fmt.Errorf("-listen: %w", err)
	}
	server := &http.Server{Handler: http.FileServer(http.Dir(dir)), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	fmt.Fprintf(say, "the page is at http://%s/\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
