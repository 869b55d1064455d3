package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	gocronredislock "github.com/go-co-op/gocron-redis-lock/v2"
	"github.com/go-co-op/gocron/v2"
	"github.com/go-redsync/redsync/v4"

	"github.com/tenure-dev/tenure/bench/internal/rival"
	"github.com/tenure-dev/tenure/scheduler"
)

// ticksRole is a process that has jobs, and tells how late each of their runs began.
const ticksRole = "ticks"

// ticksTask says which jobs, and when they are due: first, and then every so often.
type ticksTask struct {
	Way    string        `json:"way"`
	Config rival.Config  `json:"config"`
	Jobs   int           `json:"jobs"`
	First  time.Time     `json:"first"`
	Every  time.Duration `json:"every"` // in whole seconds that divide a minute
	Ticks  int           `json:"ticks"`
	Rest   time.Duration `json:"rest"` // after the last, until what was not run is lost
}

// tickRun is one that began in the process.
type tickRun struct {
	Job     int           `json:"job"`
	Tick    int           `json:"tick"`
	Late    time.Duration `json:"late"`
	Control time.Duration `json:"control"` // how late a timer of the same process was
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

func playTicks(spec json.RawMessage, _ *bufio.Reader, ready func(any) error) (result any, err error) {
	n := &notes{}
	if err := json.Unmarshal(spec, &n.task); err != nil {
		return nil, fmt.Errorf("versus: ticks: %w", err)
	}
	s, closeAll, err := n.task.open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Shutdown(), closeAll()) }()
	for job := range n.task.Jobs {
		if _, err := s.NewJob(gocron.CronJob(n.task.crontab(), true), gocron.NewTask(n.run, job), gocron.WithName(fmt.Sprintf("job-%d", job))); err != nil {
			return nil, err
		}
	}
	s.Start()
	if err := ready(struct{}{}); err != nil {
		return nil, err
	}
	n.watch()
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
