package valkeytest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valkey-io/valkey-go"
)

// observeTimeout bounds a command of Node.Do, and the writes of this package's connections.
const observeTimeout = 30 * time.Second

// Client returns a client for assertions, made at the first call and closed
// with the fleet. It survives [Node.Restart]. It keeps one connection and sends
// nothing of its own after the handshake.
func (n *Node) Client() valkey.Client {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.observer == nil {
		// A client that cannot connect yet is usable.
		client, err := n.connect()
		if client == nil {
			panic(fmt.Sprintf("valkeytest: cannot make a client for %s: %v", n.URL(), err))
		}
		n.observer = client
	}
	return n.observer
}

// reviveObserver makes the observer notice that its connection broke, so that
// the first command after a restart does not fail. The caller holds mu.
func (n *Node) reviveObserver() error {
	if n.observer == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), observeTimeout)
	defer cancel()
	for {
		err := n.observer.Do(ctx, n.observer.B().Ping().Build()).Error()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("valkeytest: no connection to the restarted %s: %w", n.Addr(), err)
		}
	}
}

// Do runs a command and waits at most 30 s for its reply. Errors are left in the result.
func (n *Node) Do(tb testing.TB, args ...string) valkey.ValkeyResult {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), observeTimeout)
	defer cancel()
	c := n.Client()
	return c.Do(ctx, c.B().Arbitrary(args...).Build())
}

// CommandStats returns how often each command was called since the server
// started or [Node.ResetStats]: names in lower case, subcommands as
// "client|setinfo". Calls from scripts count, and so do this package's own
// (info, ping, hello).
func (n *Node) CommandStats(tb testing.TB) map[string]int64 {
	tb.Helper()
	text, err := n.Do(tb, "INFO", "commandstats").ToString()
	if err != nil {
		tb.Fatalf("valkeytest: no command statistics from %s: %v", n.Addr(), err)
	}
	stats := make(map[string]int64)
	for line := range strings.SplitSeq(text, "\r\n") { // cmdstat_get:calls=12,usec=31,usec_per_call=2.58,...
		name, fields, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !ok {
			continue
		}
		calls, _, _ := strings.Cut(fields, ",")
		if stats[name], err = strconv.ParseInt(calls, 10, 64); err != nil {
			tb.Fatalf("valkeytest: unexpected line in INFO commandstats: %q", line)
		}
	}
	return stats
}

// ResetStats sets the counts of [Node.CommandStats] to zero.
func (n *Node) ResetStats(tb testing.TB) {
	tb.Helper()
	if err := n.Do(tb, "CONFIG", "RESETSTAT").Error(); err != nil {
		tb.Fatalf("valkeytest: cannot reset the statistics of %s: %v", n.Addr(), err)
	}
}

// Keys returns the names of all keys of database 0, sorted, without rosters: a Quorum keeps a list
// of the processes that use the node there, for as long as it is open.
func (n *Node) Keys(tb testing.TB) []string {
	tb.Helper()
	keys, err := n.Do(tb, "KEYS", "*").AsStrSlice()
	if err != nil {
		tb.Fatalf("valkeytest: cannot list the keys of %s: %v", n.Addr(), err)
	}
	keys = slices.DeleteFunc(keys, func(key string) bool { return strings.HasSuffix(key, ":roster") })
	slices.Sort(keys)
	return keys
}
