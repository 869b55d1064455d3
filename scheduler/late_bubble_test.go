package scheduler_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

func (c *cluster) delay(d time.Duration) {
	c.t.Helper()
	for _, n := range c.fleet.Nodes() {
		n.SetDelay(d)
	}
}

// Without catch-up a tick that nobody could ask for is not run later than the grace.
func TestTickInALongStallIsLost(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica()
		r.add(t, tenSecondly, func() {})
		r.Start()
		until(19 * time.Second)
		c.freeze(0, 1, 2)
		until(20*time.Second + scheduler.Grace + 10*time.Millisecond)
		c.thaw(0, 1, 2)
		until(35 * time.Second)
		require.Equal(t, []int{10, 30}, c.book.tickSeconds())
		require.Equal(t, map[scheduler.Reason]int{scheduler.SkipTimeout: 2}, c.book.reasons(), "when it came, and when it was given up")
	})
}

// A run that begins late takes no time from the ticks that come meanwhile, also if its replica,
// which has them in its queue, stops.
func TestLateRunLosesNoTickOfAShortInterval(t *testing.T) {
	for _, late := range []time.Duration{800 * time.Millisecond, 1800 * time.Millisecond, 3800 * time.Millisecond} {
		t.Run(late.String(), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				start := func() *replica {
					r := c.replica(scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll))
					r.add(t, secondly, func() { time.Sleep(600 * time.Millisecond) })
					r.Start()
					return r
				}
				r := start()
				until(4900 * time.Millisecond)
				require.NoError(t, r.Shutdown())
				until(5*time.Second + late)
				r = start()
				time.Sleep(500 * time.Millisecond) // the tick of 5 s is run, and another one comes
				require.NoError(t, r.Shutdown())
				time.Sleep(50 * time.Millisecond)
				start()
				until(30500 * time.Millisecond)
				var want []int
				for i := 1; i <= 30; i++ {
					want = append(want, i)
				}
				require.Equal(t, want, c.book.tickSeconds())
				require.Equal(t, 1, c.book.most)
			})
		})
	}
}

// backlogs records what a BacklogTracer is told. It is a book, too.
type backlogs struct {
	*book
	told []scheduler.TraceBacklogData // guarded by the book's mu
}

func (b *backlogs) TraceBacklog(_ context.Context, data scheduler.TraceBacklogData) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told = append(b.told, data)
}

// leaveBehind writes on some nodes what an attempt for a tick leaves there that failed, and has not
// been taken back. It returns what undoes that.
func (c *cluster) leaveBehind(identity string, tick time.Time, nodes ...int) (takeBack func()) {
	c.t.Helper()
	const key = "tenure:{job/job}:once"
	before := make(map[int]string)
	for _, i := range nodes {
		text, there := c.fleet.Node(i).Get(key)
		require.True(c.t, there)
		before[i] = text
		fields := strings.SplitN(text, " ", 15)
		fields[8], fields[9] = fields[2], fields[3]
		fields[2], fields[3], fields[4] = strconv.FormatInt(tick.UnixMilli(), 10), "1", "0"
		fields[14] = identity + "/" + strings.Repeat("x", 22)
		set(c.t, c.fleet.Node(i), key, strings.Join(fields, " "))
	}
	return func() {
		for i, text := range before {
			set(c.t, c.fleet.Node(i), key, text)
		}
	}
}

// An attempt of a replica that died without a quorum has left its number on two of five nodes. A
// replica that starts afterwards does not take it for a run.
func TestNumberOfAFailedAttemptIsAskedFor(t *testing.T) {
	for _, policy := range []scheduler.CatchUp{scheduler.CatchUpLatest, scheduler.CatchUpAll} {
		t.Run(policy.String(), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				start := func() *replica {
					r := c.replica(scheduler.WithCatchUp(time.Minute, policy))
					r.add(t, tenSecondly, func() {})
					r.Start()
					return r
				}
				first := start()
				until(15 * time.Second)
				require.NoError(t, first.Shutdown())
				c.leaveBehind("dead", at(20), 3, 4)
				until(22 * time.Second)
				start()
				until(45 * time.Second)
				require.Equal(t, []int{10, 20, 30, 40}, c.book.tickSeconds())
			})
		})
	}
}

// gatedReplica makes a replica whose nodes may forget when they are restarted.
func (c *cluster) gatedReplica(opts ...scheduler.Option) *replica {
	c.t.Helper()
	q, err := redlock.Open(c.fleet.URLs(), redlock.WithClientOption(c.fleet.ClientOption), redlock.WithTTL(ttl), redlock.WithLogger(silent))
	require.NoError(c.t, err)
	c.t.Cleanup(func() { require.NoError(c.t, q.Close()) })
	s, err := scheduler.New(q, append([]scheduler.Option{scheduler.WithLogger(silent), scheduler.WithTracer(c.book)}, opts...)...)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { require.NoError(c.t, s.Shutdown()) })
	return &replica{Scheduler: s, q: q}
}

// A leader that stops in order leads no longer while its runs end. They keep their leases.
func TestNextLeaderDoesNotWaitForRuns(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var replicas []*replica
		var mu sync.Mutex
		slow := make(map[*replica]int) // guarded by mu
		fast := make(map[int]int)      // guarded by mu
		for range 2 {
			r := c.replica(scheduler.WithElection("jobs"), scheduler.WithStopTimeout(20*time.Second))
			r.add(t, gocron.CronJob("*/5 * * * * *", true), func() { // does not listen to its context
				mu.Lock()
				slow[r]++
				mu.Unlock()
				time.Sleep(12 * time.Second)
			})
			_, err := r.NewJob(secondly, scheduler.NewTask(func(ctx context.Context) {
				run, _ := scheduler.RunFromContext(ctx)
				mu.Lock()
				defer mu.Unlock()
				fast[run.Tick.Second()]++
			}), gocron.WithName("fast"))
			require.NoError(t, err)
			r.Start()
			replicas = append(replicas, r)
		}
		until(6500 * time.Millisecond)
		leader, other := replicas[0], replicas[1]
		if leader.Elector().IsLeader(t.Context()) != nil {
			leader, other = other, leader
		}
		stopped := make(chan error)
		go func() { stopped <- leader.Shutdown() }()
		time.Sleep(100 * time.Millisecond)
		require.NoError(t, other.Elector().IsLeader(t.Context()), "the other leads at once")
		require.ErrorIs(t, leader.Elector().IsLeader(t.Context()), elector.ErrNotLeader)
		until(16500 * time.Millisecond)
		mu.Lock()
		require.Zero(t, slow[other], "the run goes on, and holds its lease")
		mu.Unlock()
		require.NoError(t, <-stopped)
		until(22 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, 1, slow[other])
		for second := 1; second <= 21; second++ {
			require.Equal(t, 1, fast[second], "the tick of second %d: %v", second, fast)
		}
	})
}
