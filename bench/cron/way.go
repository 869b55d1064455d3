package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"

	"github.com/tenure-dev/tenure/internal/soak/cast"
	"github.com/tenure-dev/tenure/internal/soak/replica"
	"github.com/tenure-dev/tenure/internal/soak/story"
	"github.com/tenure-dev/tenure/internal/soak/work"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// ttl of all locks: what redsync has by default.
const ttl = 8 * time.Second

// way is one of those to have replicas share the runs of gocron's jobs.
type way struct {
	name string
	play func(role *cast.Role, s settings, clock clockwork.Clock) (stop func() error, err error)
}

func ways() []way {
	return []way{
		{"Tenure, scheduler.New, five servers", playTenure},
		{fmt.Sprintf("gocron-redis-lock %s, one server", version("github.com/go-co-op/gocron-redis-lock/v2")), playPlugin},
		{fmt.Sprintf("redsync %s in the same way, five servers", version("github.com/go-redsync/redsync/v4")), playRedsync},
	}
}

// version is that of a module in this program.
func version(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == module {
				return dep.Version
			}
		}
	}
	return "of unknown version"
}

// play is a replica process.
func play(role *cast.Role) (func() error, error) {
	var s settings
	if err := role.Settings(&s); err != nil {
		return nil, err
	}
	for _, w := range ways() {
		if w.name == s.Way {
			return w.play(role, s, replica.Clock{Clock: clockwork.NewRealClock(), Ahead: s.Ahead})
		}
	}
	return nil, fmt.Errorf("unknown way %q", s.Way)
}

// playTenure leaves everything at its default but for the TTL.
func playTenure(role *cast.Role, s settings, clock clockwork.Clock) (func() error, error) {
	q, err := redlock.Open(s.URLs, redlock.WithTTL(ttl), redlock.WithIdentity(role.Name), redlock.WithLogger(role.Logger))
	if err != nil {
		return nil, err
	}
	sched, err := scheduler.New(q, scheduler.WithClock(clock), scheduler.WithLocation(time.UTC), scheduler.WithLogger(role.Logger))
	if err != nil {
		return nil, err
	}
	for _, j := range jobs() {
		task := scheduler.NewTask(func(ctx context.Context) {
			run, _ := scheduler.RunFromContext(ctx)
			role.Append(story.Record{Kind: story.Begin, Job: run.Job, Tick: run.Tick.UnixMilli()})
			time.Sleep(j.Takes)
		})
		if err := add(sched, j, task); err != nil {
			return nil, err
		}
	}
	sched.Start()
	return func() error { return errors.Join(sched.Shutdown(), q.Close()) }, nil
}

func add(s gocron.Scheduler, j work.Job, task gocron.Task) error {
	definition, err := j.Definition(time.Time{}, 0)
	if err == nil {
		_, err = s.NewJob(definition, task, gocron.WithName(j.Name))
	}
	return err
}

// playLocked has gocron's own scheduler lock its runs.
func playLocked(role *cast.Role, clock clockwork.Clock, inner gocron.Locker, closeAll func() error) (func() error, error) {
	l := &noting{Locker: inner, clock: clock, last: make(map[string]int64)}
	sched, err := gocron.NewScheduler(gocron.WithClock(clock), gocron.WithLocation(time.UTC), gocron.WithDistributedLocker(l))
	if err != nil {
		return nil, err
	}
	for _, j := range jobs() {
		task := gocron.NewTask(func() {
			role.Append(story.Record{Kind: story.Begin, Job: j.Name, Tick: l.tick(j)})
			time.Sleep(j.Takes)
		})
		if err := add(sched, j, task); err != nil {
			return nil, err
		}
	}
	sched.Start()
	return func() error { return errors.Join(sched.Shutdown(), closeAll()) }, nil
}

// noting notes when a lock is asked for, which is when the timer of the tick has fired: gocron does not tell a task its tick. The
// tick is the last one before that. It would be the wrong one if the timer fired later than an interval of a second or more.
type noting struct {
	gocron.Locker
	clock clockwork.Clock

	mu   sync.Mutex
	last map[string]int64 // guarded by mu; when the lock of a job was asked for that was granted last, in milliseconds since 1970
}

// Lock implements gocron.Locker.
func (l *noting) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	at := l.clock.Now().UnixMilli()
	lock, err := l.Locker.Lock(ctx, job)
	if err == nil {
		l.mu.Lock()
		l.last[job] = at
		l.mu.Unlock()
	}
	return lock, err
}

// tick is that of the run which goes on: runs are far shorter than intervals.
func (l *noting) tick(j work.Job) int64 {
	const early = 5 // milliseconds before its time that a timer may fire, by the clock that is asked afterwards
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.last[j.Name] + early
	return at - at%j.Every.Milliseconds()
}

// address is that of a server, for clients that take no URL.
func address(url string) string { return strings.TrimPrefix(url, "valkey://") }
