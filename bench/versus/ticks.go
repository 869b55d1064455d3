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
	"github.com/tenure-dev/tenure/internal/child"
	"github.com/tenure-dev/tenure/scheduler"
)

// The rivals that run jobs, in the rows of due jobs only. gocron's own plugin has one server.
var (
	tenureScheduler = &rival.Kind{Name: "Tenure's Scheduler", Module: rival.Tenure.Module, Servers: 3}
	gocronRedisLock = &rival.Kind{Name: "gocron-redis-lock", Module: "github.com/go-co-op/gocron-redis-lock/v2", Servers: 1}
	gocronAlone     = &rival.Kind{Name: "gocron, one process", Module: "github.com/go-co-op/gocron/v2", Servers: 0}
)

const (
	tickProcesses = 3
	tickNodes     = 3
	// tickRest is how long after its due time a job counts as lost.
	tickRest = 5 * time.Second
)

// due has one rival run the jobs once.
func (s *stage) due(ctx context.Context, b *board, k *rival.Kind, jobs int) error {
	processes := tickProcesses
	if k == gocronAlone {
		processes = 1
	}
	// Within lead, the processes start and write down their jobs.
	lead := 3*time.Second + time.Duration(jobs)*15*time.Millisecond
	t := ticksTask{Way: k.Name, Config: s.config(defaultTTL), Jobs: jobs, Due: time.Now().Add(lead).Truncate(time.Second).Add(time.Second)}
	t.Config.URLs = t.Config.URLs[:tickNodes]
	var all []*process
	for range processes {
		p, err := spawn(ctx, task{Ticks: &t})
		if err != nil {
			return err
		}
		defer p.Kill()
		all = append(all, p)
	}
	var late []float64
	ran := make(map[int]bool)
	for _, p := range all {
		var runs []tickRun
		if err := p.result(&runs); err != nil {
			return err
		}
		for _, r := range runs {
			late = append(late, millis(r.Late))
			ran[r.Job] = true
		}
	}
	if len(late) == 0 {
		return fmt.Errorf("no job was run within %s", tickRest)
	}
	b.quantiles(k, "ms", late)
	b.add(k, "max ms", slices.Max(late))
	b.add(k, "lost", float64(jobs-len(ran)))
	b.add(k, "twice", float64(len(late)-len(ran)))
	return nil
}

// ticksTask is the task of running jobs that are due at once.
type ticksTask struct {
	Way    string
	Config rival.Config
	Jobs   int
	Due    time.Time
}

// tickRun is one run of a job that began in the process.
type tickRun struct {
	Job  int
	Late time.Duration
}

// play runs the jobs, and returns their runs.
func (t *ticksTask) play() (_ []tickRun, err error) {
	var (
		mu   sync.Mutex
		runs []tickRun // guarded by mu
	)
	run := func(job int) {
		late := time.Since(t.Due)
		mu.Lock()
		defer mu.Unlock()
		runs = append(runs, tickRun{job, late})
	}
	s, closeAll, err := t.open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Shutdown(), closeAll()) }()
	due := t.Due.UTC()
	crontab := fmt.Sprintf("%d %d %d * * *", due.Second(), due.Minute(), due.Hour())
	for job := range t.Jobs {
		if _, err := s.NewJob(gocron.CronJob(crontab, true), gocron.NewTask(run, job), gocron.WithName(fmt.Sprintf("job-%d", job))); err != nil {
			return nil, err
		}
	}
	s.Start()
	child.Work()
	time.Sleep(time.Until(t.Due.Add(tickRest)))
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(runs), nil
}

// open makes the scheduler of t.Way.
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
		client, err := rival.GoRedis(t.Config.URLs[0], nil)
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
