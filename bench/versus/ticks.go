package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	gocronredislock "github.com/go-co-op/gocron-redis-lock/v2"
	"github.com/go-co-op/gocron/v2"
	"github.com/go-redsync/redsync/v4"

	"github.com/tenure-dev/tenure/bench/internal/rival"
	"github.com/tenure-dev/tenure/bench/internal/stat"
	"github.com/tenure-dev/tenure/internal/child"
	"github.com/tenure-dev/tenure/scheduler"
)

// Who runs jobs. Only these rows have them. gocron's own plugin has one server.
var (
	tenureScheduler = &rival.Kind{Name: "Tenure's Scheduler", Module: rival.Tenure.Module, Servers: 3}
	gocronRedisLock = &rival.Kind{Name: "gocron-redis-lock", Module: "github.com/go-co-op/gocron-redis-lock/v2", Servers: 1}
	gocronAlone     = &rival.Kind{Name: "gocron, one process", Module: "github.com/go-co-op/gocron/v2", Servers: 0}
)

const (
	tickProcesses = 3
	tickNodes     = 3
	// far is how long the answers of far nodes take.
	far = 40 * time.Millisecond
	// farEvery is how far the ticks of far are apart: from 2 s on they are asked for ahead.
	farEvery = 2 * time.Second
	// near is how near to the timer a run has to begin.
	near = 5 * time.Millisecond
	// tickRest is when a tick is lost that has not been run.
	tickRest = 5 * time.Second
)

var ticksColumns = []column{{Name: "p50 ms"}, {Name: "p99 ms"}, {Name: "max ms"}, {Name: "lost"}, {Name: "twice"}}

// dueRow is that of jobs that are all due in one second. jobs says how many.
func dueRow(name string, jobs func(size) int) *row {
	return &row{
		name: name, title: "jobs that are due in one second, three processes", columns: ticksColumns,
		run: func(ctx context.Context, s *stage, b *board) error {
			b.Work = "So many jobs with the same crontab, whose tasks return at once. Late is the beginning of the task after the due time. " +
				"gocron alone is one process, and has nobody to agree with. "
			return s.ticks(ctx, b, ticksTask{Config: s.nearNodes(), Jobs: jobs(s.size), Ticks: 1}, nil)
		},
	}
}

// farRow is that of ticks with far nodes.
func farRow() *row {
	const within = "within 5 ms of a timer, %"
	return &row{
		name: "far", title: fmt.Sprintf("ticks with nodes %s away, three processes", far), columns: append(slices.Clone(ticksColumns), column{Name: within}),
		run: func(ctx context.Context, s *stage, b *board) error {
			links, err := s.servers.Slow(far)
			if err != nil {
				return err
			}
			defer links.Close()
			b.Work = fmt.Sprintf("One job every %s, %d ticks. The timer is one of the process that runs the tick. Through toxiproxy in this process. ", farEvery, s.size.ticks)
			c := s.nearNodes()
			c.URLs = links.URLs()[:tickNodes]
			return s.ticks(ctx, b, ticksTask{Config: c, Jobs: 1, Ticks: s.size.ticks, Every: farEvery}, func(k *rival.Kind, runs []tickRun) {
				n := 0
				for _, r := range runs {
					if r.Late-r.Control <= near {
						n++
					}
				}
				b.add(k, within, 100*float64(n)/float64(len(runs)))
			})
		},
	}
}

// nearNodes is how three servers are reached.
func (s *stage) nearNodes() rival.Config {
	c := s.config(defaultTTL)
	c.URLs = c.URLs[:tickNodes]
	return c
}

// ticks has everybody run the same jobs, round after round. also may note more about the runs.
func (s *stage) ticks(ctx context.Context, b *board, t ticksTask, also func(*rival.Kind, []tickRun)) error {
	return s.each(ctx, s.size.few, []*rival.Kind{tenureScheduler, gocronAlone, gocronRedisLock}, func(k *rival.Kind) error {
		t.Way, t.Rest = k.Name, tickRest
		runs, err := runTicks(ctx, k, t)
		if err != nil {
			return err
		}
		var late []float64
		times := make(map[[2]int]int)
		for _, r := range runs {
			late = append(late, millis(r.Late))
			times[[2]int{r.Job, r.Tick}]++
		}
		b.add(k, "p50 ms", stat.Quantile(late, 0.5))
		b.add(k, "p99 ms", stat.Quantile(late, 0.99))
		b.add(k, "max ms", slices.Max(late))
		b.add(k, "lost", float64(t.Jobs*t.Ticks-len(times)))
		b.add(k, "twice", float64(len(runs)-len(times)))
		if also != nil {
			also(k, runs)
		}
		return nil
	})
}

// runTicks has processes run the jobs once, and returns all runs.
func runTicks(ctx context.Context, k *rival.Kind, t ticksTask) (runs []tickRun, err error) {
	processes := tickProcesses
	if k == gocronAlone {
		processes = 1
	}
	// In that time the processes begin, and write down their jobs.
	lead := 3*time.Second + time.Duration(t.Jobs)*15*time.Millisecond
	t.First = time.Now().Add(lead).Truncate(max(time.Second, t.Every)).Add(max(time.Second, t.Every))
	var all []*process
	for range processes {
		p, err := spawn(ctx, task{Ticks: &t})
		if err != nil {
			return nil, err
		}
		defer p.Kill()
		all = append(all, p)
	}
	for _, p := range all {
		var its []tickRun
		if err := p.result(&its); err != nil {
			return nil, err
		}
		runs = append(runs, its...)
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("no tick was run within %s", tickRest)
	}
	return runs, nil
}

// ticksTask says which jobs, and when they are due: first, and then every so often.
type ticksTask struct {
	Way    string
	Config rival.Config
	Jobs   int
	First  time.Time
	Every  time.Duration // in whole seconds that divide a minute
	Ticks  int
	Rest   time.Duration // after the last, until what was not run is lost
}

// tickRun is one that began in the process.
type tickRun struct {
	Job     int
	Tick    int
	Late    time.Duration
	Control time.Duration // how late a timer of the same process was
}

// notes are the runs so far, and how late the timer was, by ticks.
type notes struct {
	task ticksTask

	mu      sync.Mutex
	runs    []tickRun       // guarded by mu
	control []time.Duration // guarded by mu
}

func (n *notes) due(tick int) time.Time { return n.task.First.Add(time.Duration(tick) * n.task.Every) }

// run is the task of all jobs.
func (n *notes) run(job int) {
	now := time.Now()
	tick := 0
	if n.task.Ticks > 1 {
		tick = int(now.Sub(n.task.First).Round(n.task.Every) / n.task.Every)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.runs = append(n.runs, tickRun{Job: job, Tick: tick, Late: now.Sub(n.due(tick))})
}

// watch has a timer go off at each tick, and returns when the rest is over.
func (n *notes) watch() {
	for tick := range n.task.Ticks {
		due := n.due(tick)
		time.Sleep(time.Until(due))
		late := time.Since(due)
		n.mu.Lock()
		n.control = append(n.control, late)
		n.mu.Unlock()
	}
	time.Sleep(n.task.Rest)
}

// report returns the runs of ticks that were due.
func (n *notes) report() (due []tickRun) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, run := range n.runs {
		if run.Tick >= 0 && run.Tick < len(n.control) {
			run.Control = n.control[run.Tick]
			due = append(due, run)
		}
	}
	return due
}

func (t *ticksTask) crontab() string {
	if t.Ticks > 1 {
		return fmt.Sprintf("*/%d * * * * *", int(t.Every.Seconds()))
	}
	first := t.First.UTC()
	return fmt.Sprintf("%d %d %d * * *", first.Second(), first.Minute(), first.Hour())
}

// play runs the jobs, and tells of their runs.
func (t *ticksTask) play() (runs []tickRun, err error) {
	n := &notes{task: *t}
	s, closeAll, err := t.open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Shutdown(), closeAll()) }()
	for job := range t.Jobs {
		if _, err := s.NewJob(gocron.CronJob(t.crontab(), true), gocron.NewTask(n.run, job), gocron.WithName(fmt.Sprintf("job-%d", job))); err != nil {
			return nil, err
		}
	}
	s.Start()
	var watching sync.WaitGroup
	watching.Go(n.watch)
	child.Work()
	watching.Wait()
	return n.report(), nil
}

// open makes the scheduler of a way.
func (t *ticksTask) open() (s gocron.Scheduler, closeAll func() error, err error) {
	switch t.Way {
	case tenureScheduler.Name:
		q, err := rival.OpenQuorum(t.Config)
		if err != nil {
			return nil, nil, err
		}
		s, err := scheduler.New(q, scheduler.WithLocation(time.UTC), scheduler.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			return nil, nil, errors.Join(err, q.Close())
		}
		return s, q.Close, nil
	case gocronRedisLock.Name:
		client, err := rival.GoRedis(t.Config.URLs[0])
		if err != nil {
			return nil, nil, err
		}
		l, err := gocronredislock.NewRedisLocker(client, redsync.WithTries(1), redsync.WithExpiry(t.Config.TTL))
		if err != nil {
			return nil, nil, errors.Join(err, client.Close())
		}
		s, err := gocron.NewScheduler(gocron.WithLocation(time.UTC), gocron.WithDistributedLocker(l))
		if err != nil {
			return nil, nil, errors.Join(err, client.Close())
		}
		return s, client.Close, nil
	default:
		s, err = gocron.NewScheduler(gocron.WithLocation(time.UTC))
		return s, func() error { return nil }, err
	}
}
