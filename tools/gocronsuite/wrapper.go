package main

// wrapper is in the place of gocron.NewScheduler.
const wrapper = `package gocronsuite

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

type (
	SchedulerOption any
	Scheduler       = gocron.Scheduler
)

func WithStopTimeout(d time.Duration) SchedulerOption { return scheduler.WithStopTimeout(d) }
func WithLocation(l *time.Location) SchedulerOption   { return scheduler.WithLocation(l) }
func WithGlobalJobOptions(o ...gocron.JobOption) SchedulerOption {
	return scheduler.WithJobOptions(o...)
}

var (
	fleet   = sync.OnceValues(func() (*redlocktest.Fleet, error) { return redlocktest.New(3) })
	counter atomic.Int64
)

func NewScheduler(opts ...SchedulerOption) (gocron.Scheduler, error) {
	f, err := fleet()
	if err != nil {
		return nil, err
	}
	q, err := redlock.Open(f.URLs(), redlock.WithClientOption(f.ClientOption), redlock.WithoutRestartGate(),
		redlock.WithPrefix(fmt.Sprint("suite", counter.Add(1))), redlock.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, err
	}
	all := []scheduler.Option{scheduler.WithLogger(slog.New(slog.DiscardHandler))}
	for _, o := range opts {
		switch o := o.(type) {
		case scheduler.Option:
			all = append(all, o)
		case gocron.SchedulerOption:
			all = append(all, scheduler.WithGocron(o))
		default:
			all = append(all, nil)
		}
	}
	s, err := scheduler.New(q, all...)
	if err != nil {
		return nil, err
	}
	return &named{Scheduler: s, q: q}, nil
}

// named gives names to jobs, and closes its Quorum.
type named struct {
	*scheduler.Scheduler
	q *redlock.Quorum
}

func (n *named) name(opts []gocron.JobOption) []gocron.JobOption {
	return append([]gocron.JobOption{gocron.WithName(fmt.Sprint("job ", counter.Add(1)))}, opts...)
}

func (n *named) Shutdown() error {
	defer n.q.Close()
	return n.Scheduler.Shutdown()
}

func (n *named) NewJob(d gocron.JobDefinition, t gocron.Task, opts ...gocron.JobOption) (gocron.Job, error) {
	return n.Scheduler.NewJob(d, t, n.name(opts)...)
}

func (n *named) Update(id uuid.UUID, d gocron.JobDefinition, t gocron.Task, opts ...gocron.JobOption) (gocron.Job, error) {
	return n.Scheduler.Update(id, d, t, n.name(opts)...)
}
`
