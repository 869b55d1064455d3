//go:build long

package redlock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// What cards and journals cost a node is bounded: memory, and how long others wait for a command.
// The log has what was measured.
func TestCostOfTheBoard(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open()
	text := func(n int) string { return strings.Repeat("x", n) }
	post := func(cards []redlock.Card, entries ...redlock.Entry) time.Duration {
		began := time.Now()
		nodes, err := q.Board().Post(t.Context(), cards, entries)
		require.NoError(t, err)
		require.GreaterOrEqual(t, nodes, 2)
		return time.Since(began)
	}
	used := func(keys ...string) (bytes int64) {
		for _, key := range keys {
			n, err := s.Node(0).Do(t, "MEMORY", "USAGE", key, "SAMPLES", "0").AsInt64()
			require.NoError(t, err)
			bytes += n
		}
		return bytes
	}
	keys := func(kind string) []string {
		key := "tenure:cards:" + kind
		return []string{key + ":ids", key + ":expiries", key + ":texts"}
	}
	cards := func(kind string, n, size int) (all []redlock.Card) {
		for i := range n {
			all = append(all, redlock.Card{Kind: kind, ID: fmt.Sprintf("%022d", i), Text: text(size), Lifetime: time.Hour})
		}
		return all
	}
	post(cards("processes", 100, 2048))
	post(cards("jobs", 50, 400))
	for i := range 25 {
		post(nil, redlock.Entry{Journal: "runs/job", Text: fmt.Sprintf("%02d%s", i, text(298)), Most: 20, Keep: time.Hour})
	}
	processes, jobs, runs := used(keys("processes")...), used(keys("jobs")...), used("tenure:journal:runs/job")
	t.Logf("memory: 100 cards of 2 KiB %d bytes, 50 of 400 bytes %d, a journal of 20 entries of 300 bytes %d", processes, jobs, runs)
	require.Less(t, processes, int64(2*100*2048))
	require.Less(t, jobs, int64(50*1024))
	require.Less(t, runs, int64(10*1024))

	var posts, read time.Duration
	const times = 20
	beat := append(cards("jobs", 50, 400), redlock.Card{Kind: "processes", ID: "me", Text: text(2048), Lifetime: time.Hour})
	s.do([]string{"CONFIG", "RESETSTAT"})
	for range times {
		posts += post(beat)
		began := time.Now()
		got, _, err := q.Board().Cards(t.Context(), "jobs", "", 50)
		require.NoError(t, err)
		require.Len(t, got, 50)
		read += time.Since(began)
	}
	stats, err := s.Node(0).Do(t, "INFO", "commandstats").ToString()
	require.NoError(t, err)
	for _, line := range strings.Split(stats, "\r\n") {
		if strings.HasPrefix(line, "cmdstat_evalsha") {
			t.Log("node 0: " + line)
		}
	}
	t.Logf("a Post of 51 cards took %v, Cards of 50 %v", posts/times, read/times)
}
