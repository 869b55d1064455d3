// Nodes checks a fleet of servers before anything relies on it: that each can be reached with TLS,
// that its user has the rights that Tenure needs, and that it votes, and if not why, and until
// when.
//
//	go run ./examples/nodes -prefix billing -ca ca.crt -cert client.crt -key client.key \
//		valkeys://billing:PASSWORD@a.example.net:6379 valkeys://...
//
// The files beside it are what the nodes are set up with: valkey.conf, users.acl, and
// certificates.sh, which makes certificates. docs/nodes.md explains them. It exits with 1 if a node
// does not vote, or a lease cannot be had.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
)

func main() {
	prefix := flag.String("prefix", redlock.DefaultPrefix, "the service's prefix: redlock.WithPrefix")
	ca := flag.String("ca", "", "file with the certificate of the authority that signed those of the nodes")
	cert := flag.String("cert", "", "file with this client's certificate, for nodes that demand one")
	key := flag.String("key", "", "file with its key")
	flag.Parse()
	options := []redlock.Option{redlock.WithPrefix(*prefix)}
	if *ca != "" {
		secure, err := withTLS(*ca, *cert, *key)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		options = append(options, secure)
	}
	if err := check(context.Background(), os.Stdout, flag.Args(), options...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// withTLS trusts the authority and shows the client's certificate. The URLs begin with valkeys://,
// and the names in them are those in the nodes' certificates.
func withTLS(ca, cert, key string) (redlock.Option, error) {
	authority, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s has no certificate", ca)
	}
	own, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	return redlock.WithClientOption(func(_ string, o *valkey.ClientOption) {
		if o.TLSConfig != nil { // a URL with valkeys://, which has set the name to expect
			o.TLSConfig.RootCAs = trusted
			o.TLSConfig.Certificates = []tls.Certificate{own}
		}
	}), nil
}

// check says what each node answers, and tries a lease.
func check(ctx context.Context, out io.Writer, urls []string, options ...redlock.Option) error {
	q, err := redlock.Open(urls, options...)
	if err != nil {
		return err
	}
	defer q.Close()
	voting := 0
	for _, n := range answers(ctx, q) {
		if n.Votes {
			voting++
			fmt.Fprintln(out, n.Node, "votes")
		} else {
			fmt.Fprintln(out, n.Node, "does not vote:", n.Err)
		}
		for _, warning := range n.Warnings {
			fmt.Fprintln(out, n.Node, "warning:", warning)
		}
	}
	lease, err := q.TryAcquire(ctx, "check")
	if err != nil {
		return fmt.Errorf("no lease: %w", err)
	}
	if err := errors.Join(lease.Extend(ctx), lease.Release(ctx)); err != nil {
		return fmt.Errorf("no use of a lease: %w", err)
	}
	fmt.Fprintln(out, "a lease was acquired, extended and released")
	if voting < len(urls) {
		return fmt.Errorf("%d of %d nodes vote", voting, len(urls))
	}
	return nil
}

// answers is what the nodes say, once all of them have, and after a while of those that have.
func answers(ctx context.Context, q *redlock.Quorum) []redlock.NodeStatus {
	enough := time.After(5 * time.Second)
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		nodes := q.Nodes(ctx)
		if !slices.ContainsFunc(nodes, func(n redlock.NodeStatus) bool { return !n.Reachable }) {
			return nodes
		}
		select {
		case <-again.C:
		case <-enough:
			return nodes
		}
	}
}
