// Package place has the servers of the benchmark, and links that limit the bandwidth to them. All
// of them end with this process.
package place

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/bench/internal/rival"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

// commandTimeout bounds a command that this package sends to a server itself.
const commandTimeout = 30 * time.Second

// lookEvery is how often AwaitVotes asks whether the servers vote.
const lookEvery = 200 * time.Millisecond

// Servers are the valkey-server processes, without persistence. They are not safe for concurrent
// use.
type Servers struct{ *valkeytest.Fleet }

// AwaitVotes waits until Tenure lets all servers vote. A server that is younger than the quarantine
// does not vote.
func (s *Servers) AwaitVotes(ctx context.Context) error {
	q, err := rival.OpenQuorum(rival.Config{URLs: s.URLs(), TTL: redlock.DefaultTTL})
	if err != nil {
		return err
	}
	defer q.Close()
	for ; ctx.Err() == nil; time.Sleep(lookEvery) {
		if !slices.ContainsFunc(q.Nodes(ctx), func(n redlock.NodeStatus) bool { return !n.Votes }) {
			return nil
		}
	}
	return ctx.Err()
}

// do sends a command to a server.
func do(ctx context.Context, n *valkeytest.Node, words ...string) valkey.ValkeyResult {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	c := n.Client()
	return c.Do(ctx, c.B().Arbitrary(words...).Build())
}

// Flush deletes everything on all servers. No lock may be held.
func (s *Servers) Flush(ctx context.Context) error {
	for _, n := range s.Nodes() {
		if err := do(ctx, n, "FLUSHALL", "SYNC").Error(); err != nil {
			return fmt.Errorf("place: cannot flush %s: %w", n.Addr(), err)
		}
	}
	return nil
}

// Locks counts the keys on some of the servers. It leaves out Tenure's counters and records, which
// are kept on purpose.
func (s *Servers) Locks(ctx context.Context, nodes []*valkeytest.Node) (int, error) {
	count := 0
	for _, n := range nodes {
		names, err := do(ctx, n, "KEYS", "*").AsStrSlice()
		if err != nil {
			return 0, fmt.Errorf("place: cannot list the keys of %s: %w", n.Addr(), err)
		}
		for _, name := range names {
			if !kept(name) {
				count++
			}
		}
	}
	return count, nil
}

// kept reports whether a key is one of Tenure's that outlive a lease by design. The names of locks
// end with a brace.
func kept(name string) bool {
	return strings.HasPrefix(name, redlock.DefaultPrefix+":") && !strings.HasSuffix(name, "}")
}

// Expiry returns when a lock on a key has expired for a caller that needs so many of the servers to
// be free. This is the need-th of the servers' expiry times, by their wall clock, which is this
// machine's. A server without the key is free already.
func (s *Servers) Expiry(ctx context.Context, key string, servers, need int) (time.Time, error) {
	var times []int64
	for _, n := range s.Nodes()[:servers] {
		ms, err := do(ctx, n, "PEXPIRETIME", key).AsInt64()
		if err != nil {
			return time.Time{}, fmt.Errorf("place: %s: %w", n.Addr(), err)
		}
		times = append(times, ms)
	}
	slices.Sort(times)
	if times[need-1] < 0 {
		return time.Time{}, fmt.Errorf("place: %s is on too few servers to keep anybody out: %v", key, times)
	}
	return time.UnixMilli(times[need-1]), nil
}

// fill sets other keys, which expire after an hour.
const fill = `for i = 1, tonumber(ARGV[1]) do redis.call("set", "other:" .. i, "x", "px", 3600000) end`

// Fill sets that many other keys on each server. They expire after an hour.
func (s *Servers) Fill(ctx context.Context, keys int) error {
	for _, n := range s.Nodes() {
		if err := do(ctx, n, "EVAL", fill, "0", strconv.Itoa(keys)).Error(); err != nil && !valkey.IsValkeyNil(err) {
			return fmt.Errorf("place: cannot fill %s: %w", n.Addr(), err)
		}
	}
	return nil
}

// info returns the fields of a section of a server's INFO.
func info(ctx context.Context, n *valkeytest.Node, section string) (map[string]string, error) {
	text, err := do(ctx, n, "INFO", section).ToString()
	if err != nil {
		return nil, fmt.Errorf("place: %s: INFO %s: %w", n.Addr(), section, err)
	}
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields[name] = value
	}
	return fields, nil
}

// CPU returns how much CPU all servers have used, user and system, from INFO cpu.
func (s *Servers) CPU(ctx context.Context) (used time.Duration, err error) {
	for _, n := range s.Nodes() {
		fields, err := info(ctx, n, "cpu")
		if err != nil {
			return 0, err
		}
		for _, of := range []string{"user", "sys"} {
			spent, err := time.ParseDuration(fields["used_cpu_"+of] + "s")
			if err != nil {
				return 0, fmt.Errorf("place: %s: INFO cpu: %w", n.Addr(), err)
			}
			used += spent
		}
	}
	return used, nil
}

// Version returns the version that the first server reports.
func (s *Servers) Version(ctx context.Context) (string, error) {
	fields, err := info(ctx, s.Node(0), "server")
	return cmp.Or(fields["valkey_version"], fields["redis_version"]), err
}
