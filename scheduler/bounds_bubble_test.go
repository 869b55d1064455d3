package scheduler_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// bounded is a book that closes a replica's Quorum when it is told of too many skipped ticks: what
// asks for a tick again and again lets no time pass in a bubble, and ends no test.
type bounded struct {
	*book
	most  int
	close func()
	once  sync.Once
}

func (b *bounded) TraceSkip(ctx context.Context, data scheduler.TraceSkipData) {
	b.book.TraceSkip(ctx, data)
	if b.skipped() > b.most {
		b.once.Do(func() { go b.close() })
	}
}

// skipped is how many ticks were.
func (b *book) skipped() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.skips)
}

// givenUp is how many ticks were skipped for good.
func (b *book) givenUp() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, s := range b.skips {
		if !s.Pending {
			n++
		}
	}
	return n
}

// within makes a replica that may skip so many ticks.
func (c *cluster) within(most int, opts ...scheduler.Option) *replica {
	b := &bounded{book: c.book, most: most}
	r := c.replica(append(opts, scheduler.WithTracer(b))...)
	b.close = func() { _ = r.q.Close() }
	return r
}

// The last run of a job that ends is not ended with it, and is repeated if it was cut short,
// however far ticks are apart.
func TestLastRunOfAJobThatEnds(t *testing.T) {
	for name, definition := range map[string]gocron.JobDefinition{"crontab": gocron.CronJob("0 * * * * *", true), "interval": gocron.DurationJob(time.Minute)} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				r := c.within(100, scheduler.WithCatchUp(20*time.Second, scheduler.CatchUpAll), scheduler.WithDelivery(redlock.AtLeastOnce))
				causes := make(chan error, 10)
				opts := []gocron.JobOption{gocron.WithStopAt(gocron.WithStopDateTime(at(130)))}
				if name == "interval" {
					opts = append(opts, gocron.WithStartAt(gocron.WithStartDateTime(at(60))))
				}
				r.add(t, definition, func(ctx context.Context) {
					time.Sleep(5 * time.Second)
					causes <- context.Cause(ctx)
					if run, _ := scheduler.RunFromContext(ctx); run.Attempt == 1 && run.Tick.Equal(at(120)) {
						panic("cut short")
					}
				}, opts...)
				r.Start()
				until(5 * time.Minute)
				require.Equal(t, []int{60, 120, 120}, c.book.tickSeconds())
				close(causes)
				for cause := range causes {
					require.NoError(t, cause)
				}
			})
		})
	}
}

// missedTicks has so many ticks missed. While they are caught up others become due, of which each
// may take the place of one that was missed: how many, depends on the order of what happens at
// once.
func missedTicks(t *testing.T, c *cluster, missed int) {
	const meanwhile = 27
	log := new(journal)
	begin := func() *replica {
		r := c.within(1000, scheduler.WithCatchUp(10*time.Hour, scheduler.CatchUpAll), scheduler.WithLogger(log.logger()))
		r.add(t, secondly, func() {})
		r.Start()
		return r
	}
	first := begin()
	until(3200 * time.Millisecond)
	require.NoError(t, first.Shutdown())
	until(time.Duration(missed+3)*time.Second + 500*time.Millisecond)
	begin()
	last := missed + 3 + meanwhile
	until(time.Duration(last) * time.Second)
	got, lost := c.book.tickSeconds(), c.book.givenUp()
	require.Equal(t, []int{1, 2, 3}, got[:3])
	require.Equal(t, last, got[len(got)-1], "it has caught up")
	require.True(t, slices.IsSorted(got))
	require.Len(t, slices.Compact(slices.Clone(got)), last-lost, "each tick is run once, or given up once")
	most := missed - scheduler.MaxCatchUp
	require.GreaterOrEqual(t, lost, most)
	require.LessOrEqual(t, lost, most+meanwhile)
	said := len(log.lines("more ticks were missed than a job catches up"))
	require.Equal(t, lost > 0, said > 0)
	require.LessOrEqual(t, said, meanwhile)
}

// A run that was cut short is run again also if it was the first of all, and the days, weeks or
// months of the schedule are counted from it.
func TestFirstRunOfEverySecondDayIsCutShort(t *testing.T) {
	for _, every := range []uint{1, 2} {
		alone(t, func(t *testing.T, c *cluster) {
			zone := time.FixedZone("midnight in ten seconds", -10)
			begin := func(task any) *replica {
				r := c.replica(scheduler.WithCatchUp(72*time.Hour, scheduler.CatchUpAll), scheduler.WithDelivery(redlock.AtLeastOnce), scheduler.WithLocation(zone))
				r.add(t, gocron.DailyJob(every, gocron.NewAtTimes(gocron.NewAtTime(0, 0, 0))), task,
					gocron.WithStartAt(gocron.WithStartDateTimePast(time.Date(1999, 12, 30, 0, 0, 0, 0, zone))))
				r.Start()
				return r
			}
			dies := begin(func(ctx context.Context) {
				<-ctx.Done()
				time.Sleep(time.Minute)
			})
			until(15 * time.Second)
			require.NoError(t, dies.q.Close())
			until(30 * time.Second)
			begin(func() {})
			until(200 * time.Second)
			assert.Equal(t, []int{10, 10}, c.book.tickSeconds(), "every %d days", every)
		})
	}
}

// A run that was cancelled counts as complete, and is not repeated, whatever becomes of it.
func TestCancelledRunIsNotRepeated(t *testing.T) {
	for name, end := range map[string]func(c *cluster){
		"it panics":           nil,
		"its lease is lost":   func(c *cluster) { c.freeze(0, 1, 2) },
		"it returns an error": func(*cluster) {},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				operator := c.operator()
				r := c.replica(scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll), scheduler.WithDelivery(redlock.AtLeastOnce))
				r.add(t, gocron.CronJob("0 * * * * *", true), func(ctx context.Context) error {
					if run, _ := scheduler.RunFromContext(ctx); run.Attempt > 1 {
						return nil
					}
					<-ctx.Done()
					if end == nil {
						panic(context.Cause(ctx))
					}
					time.Sleep(20 * time.Second)
					return context.Cause(ctx)
				})
				r.Start()
				until(62 * time.Second)
				run, err := operator.Running(t.Context(), "job")
				require.NoError(t, err)
				require.NoError(t, operator.Cancel(t.Context(), run.ID(), "the wrong table"))
				if end != nil {
					end(c)
				}
				until(75 * time.Second)
				c.thaw(0, 1, 2)
				until(110 * time.Second)
				require.Equal(t, []int{60}, c.book.tickSeconds())
			})
		})
	}
}
