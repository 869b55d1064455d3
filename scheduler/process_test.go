package scheduler_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/child"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// processVariable makes the test binary a replica: its value is the nodes' URLs, by how much its
// clock is ahead, and the election's name.
const processVariable = "SCHEDULER_TEST_REPLICA"

// beReplica runs a job every second and prints the tick of each run, until its input ends or it is
// killed.
func beReplica(settings string) error {
	part := strings.Split(settings, " ")
	skew, err := time.ParseDuration(part[1])
	if err != nil {
		return err
	}
	q, err := redlock.Open(strings.Split(part[0], ","), redlock.WithTTL(processTTL), redlock.WithMaxTTL(processTTL),
		redlock.WithClockSkew(time.Second), redlock.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	opts := []scheduler.Option{ahead(skew), scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll), scheduler.WithLogger(slog.New(slog.DiscardHandler))}
	if part[2] != "" {
		opts = append(opts, scheduler.WithElection(part[2]))
	}
	s, err := scheduler.New(q, opts...)
	if err != nil {
		return err
	}
	tick := &printer{}
	if _, err := s.NewJob(secondly, scheduler.NewTask(tick.print), gocron.WithName("job")); err != nil {
		return err
	}
	s.Start()
	child.Work()
	if err := s.Shutdown(); err != nil {
		return err
	}
	return q.Close()
}

const processTTL = 2 * time.Second

// diary is what processes ran.
type diary struct {
	mu    sync.Mutex
	runs  map[int64]int // guarded by mu; by tick
	last  int           // guarded by mu; who ran one last
	first int64         // guarded by mu
	until int64         // guarded by mu; the greatest tick
}

func (d *diary) add(who int, tick int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.runs[tick]++
	d.last, d.until = who, max(d.until, tick)
	if d.first == 0 {
		d.first = tick
	}
}

func (d *diary) ticks() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.runs)
}

// waitFor waits until so many more ticks were run.
func (d *diary) waitFor(t *testing.T, more int) {
	t.Helper()
	before := d.ticks()
	require.Eventually(t, func() bool { return d.ticks() >= before+more }, 3*patience, 10*time.Millisecond)
}

// startProcess starts a replica whose runs are written into the diary.
func startProcess(t *testing.T, d *diary, who int, urls []string, skew time.Duration, election string) *child.Replica {
	t.Helper()
	r, err := child.StartReplica(processVariable+"="+strings.Join(urls, ",")+" "+skew.String()+" "+election, func(line string) {
		var tick int64
		if _, err := fmt.Sscan(line, &tick); err == nil {
			d.add(who, tick)
		}
	})
	require.NoError(t, err)
	t.Cleanup(r.Stop)
	return r
}
