//go:build !js

// Demo is the demonstration: the library, its nodes and its replicas, compiled to WebAssembly, in
// one page. Outside of a browser this program builds the page's files. With -listen it serves them
// too:
//
//	go run ./examples/demo                            builds them, in bin/demo
//	go run ./examples/demo -listen 127.0.0.1:8081     and serves them
//
// The files are static: any web server can serve them. In the page each replica is its own instance
// of the module. A frozen instance stops, and a killed instance is removed; see static/host.js.
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

// serve serves the files over HTTP.
func serve(dir, address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("-listen: %w", err)
	}
	fmt.Printf("the page is at http://%s/\n", listener.Addr())
	return (&http.Server{Handler: http.FileServer(http.Dir(dir)), ReadHeaderTimeout: 10 * time.Second}).Serve(listener)
}
