// Nodes checks a fleet of servers before anything relies on it: that each can be reached with TLS,
// that its user has the rights that Tenure needs, and that it votes, and if not why, and until
// when.
//
//	export TENURE_PREFIX=billing TENURE_NODES_FILE=urls
//	export TENURE_TLS_CA=tls/ca.crt TENURE_TLS_CERT=tls/client.crt TENURE_TLS_KEY=tls/client.key
//	go run ./examples/nodes
//
// The files beside it are what the nodes are set up with: valkey.conf, users.acl, and
// certificates.sh, which makes certificates. docs/nodes.md explains them. It exits with 1 if a node
// does not vote, or a lease cannot be had.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/redlock"
)

func main() {
	q, err := redlock.FromEnv()
	if err == nil {
		err = errors.Join(check(context.Background(), os.Stdout, q), q.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// check says what each node answers, and tries a lease.
func check(ctx context.Context, out io.Writer, q *redlock.Quorum) error {
	nodes := answers(ctx, q)
	voting := 0
	for _, n := range nodes {
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
	if voting < len(nodes) {
		return fmt.Errorf("%d of %d nodes vote", voting, len(nodes))
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
