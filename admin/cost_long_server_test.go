//go:build long

package admin_test

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// costVariable is how many replicas TestWhatTellingCosts has. By default there are few, so that the test is quick.
const costVariable = "TENURE_COST_REPLICAS"

const (
	costReplicas = 4
	costJobs     = 50
	// costTime is two reports of each replica, at least.
	costTime = 25 * time.Second
)

// usage is what a server has done and has.
type usage struct{ scripts, bytes, memory int64 }

func usageOf(t *testing.T, n *valkeytest.Node) (u usage) {
	t.Helper()
	text, err := n.Do(t, "INFO", "stats").ToString()
	require.NoError(t, err)
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "total_net_input_bytes" || name == "total_net_output_bytes" {
			bytes, err := strconv.ParseInt(value, 10, 64)
			require.NoError(t, err)
			u.bytes += bytes
		}
	}
	for name, calls := range n.CommandStats(t) {
		if strings.HasPrefix(name, "evalsha") {
			u.scripts += calls
		}
	}
	for _, key := range n.Keys(t) {
		size, err := n.Do(t, "MEMORY", "USAGE", key, "SAMPLES", "0").AsInt64()
		require.NoError(t, err)
		u.memory += size
	}
	return u
}

// told is what a server does in a second for replicas of jobs that do not run, and what it has.
func told(t *testing.T, replicas int, opts ...scheduler.Option) (scripts, bytes float64, memory int64) {
	fleet := valkeytest.Start(t, 3)
	quiet := slog.New(slog.DiscardHandler)
	for i := range replicas {
		q, err := redlock.Open(fleet.URLs(), redlock.WithIdentity(fmt.Sprintf("replica-%d.of-a-deployment", i)), redlock.WithoutRestartGate(), redlock.WithLogger(quiet))
		require.NoError(t, err)
		s, err := scheduler.New(q, append(opts, scheduler.WithLogger(quiet))...)
		require.NoError(t, err)
		for j := range costJobs {
			_, err := s.NewJob(gocron.CronJob("0 3 29 2 *", false), gocron.NewTask(func() {}), gocron.WithName(fmt.Sprintf("a-job-with-a-name-%d", j)))
			require.NoError(t, err)
		}
		s.Start()
		defer func() {
			require.NoError(t, s.Shutdown())
			require.NoError(t, q.Close())
		}()
	}
	if len(opts) == 0 {
		q, err := redlock.Open(fleet.URLs(), redlock.WithoutRestartGate(), redlock.WithLogger(quiet))
		require.NoError(t, err)
		defer func() { require.NoError(t, q.Close()) }()
		c, err := admin.New(q)
		require.NoError(t, err)
		require.Eventually(t, func() bool { all, err := c.Replicas(t.Context()); return err == nil && len(all) == replicas }, patience, 10*poll)
		began := time.Now()
		require.Len(t, jobsOf(t, c), costJobs)
		t.Logf("%d jobs are read in %v", costJobs, time.Since(began))
	}
	// Connected, and everything was told once. No event says that: it is about what is told again.
	time.Sleep(10 * time.Second)
	before, began := usageOf(t, fleet.Node(0)), time.Now()
	time.Sleep(costTime) // what is measured
	after, seconds := usageOf(t, fleet.Node(0)), time.Since(began).Seconds()
	return float64(after.scripts-before.scripts) / seconds, float64(after.bytes-before.bytes) / seconds, after.memory
}

// What replicas tell, and that they hear orders, costs a server a command for each in ten seconds,
// and little memory.
func TestWhatTellingCosts(t *testing.T) {
	t.Parallel()
	replicas := costReplicas
	if text := os.Getenv(costVariable); text != "" {
		var err error
		replicas, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	var scripts, bytes, more, moreBytes float64
	var memory int64
	t.Run("both", func(t *testing.T) {
		t.Run("silent", func(t *testing.T) {
			t.Parallel()
			scripts, bytes, _ = told(t, replicas, scheduler.WithTelling(scheduler.Telling{NoCard: true, NoHistory: true, NoOrders: true}))
		})
		t.Run("told", func(t *testing.T) {
			t.Parallel()
			more, moreBytes, memory = told(t, replicas)
		})
	})
	t.Logf("%d replicas of %d jobs, on each node: %.1f scripts a second and %.2f KiB a second more than %.1f and %.2f KiB, %.0f KiB of memory",
		replicas, costJobs, more-scripts, (moreBytes-bytes)/1024, scripts, bytes/1024, float64(memory)/1024)
	require.LessOrEqual(t, more-scripts, 0.15*float64(replicas)+1)
	require.LessOrEqual(t, memory, int64(10*1024*(replicas+costJobs)))
}
