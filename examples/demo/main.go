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
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

func main() {
	out := flag.String("out", "bin/demo", "`directory` of the files")
	listen := flag.String("listen", "", "`address` to serve them at")
	flag.Parse()
	size, err := build(context.Background(), *out)
	if err == nil {
		fmt.Printf("%s has the demonstration: %.2f MB compressed, and %.0f MB are the most\n", *out, float64(size)/1e6, maxSize/1e6)
		if *listen != "" {
			err = serve(*out, *listen)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve serves the files.
func serve(dir, address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("-listen: %w", err)
	}
	fmt.Printf("the page is at http://%s/\n", listener.Addr())
	return (&http.Server{Handler: http.FileServer(http.Dir(dir)), ReadHeaderTimeout: 10 * time.Second}).Serve(listener)
}
