package scheduler

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/redlock"
)

// rollout is for how long replicas of two versions of a service may run beside each other.
const rollout = 5 * time.Minute

// maxOthers bounds how many conflicts a job keeps.
const maxOthers = 16

// Conflict is a job of this name that another replica runs in another way: on another schedule, in
// another zone, or in another program. The two take each other's ticks: of a tick that both have,
// one of them runs its own task, and one that only one of them has is run beside the other's. Every
// run's lease is labelled with the three, and a replica that still reads another label than its
// own, of a tick more than five minutes after the first that it saw, reports it; during a rollout
// of less there is none.
type Conflict struct {
	Job   string
	Own   string    // what this replica runs: program, schedule and zone
	Other string    // what the other one runs
	By    string    // the other one's identity, see redlock.WithIdentity; empty if not known
	Tick  time.Time // the latest tick that the other one was granted, as far as this replica has read
}

// labels is what replicas run under a job's name, as far as this one has read.
type labels struct {
	job   *job
	own   string
	began time.Time // when this replica's job was made

	mu     sync.Mutex
	others map[string]*other // guarded by mu; at most maxOthers
	asked  time.Time         // guarded by mu; when the nodes were asked for the label last
}

// other is another label.
type other struct {
	Conflict
	first time.Time // the first tick that was seen of it
	told  bool      // it is a conflict
}

func (l *labels) conflicts() []Conflict {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []Conflict
	for _, o := range l.others {
		if o.told {
			found = append(found, o.Conflict)
		}
	}
	return found
}

// read takes the label of a tick that was granted, and reports whether it is one of a conflict that
// was not read before, and whether it is the first of its label. What was granted before this job
// was made may be of an earlier version.
func (l *labels) read(job string, tick time.Time, label, by string) (c Conflict, news, first bool) {
	if label == "" || label == l.own || tick.Before(l.began) {
		return c, false, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.other(job, tick, label)
	if o == nil || !tick.After(o.Tick) {
		return c, false, false
	}
	if o.Tick = tick; by != "" {
		o.By = by
	}
	if tick.Sub(o.first) <= rollout {
		return c, false, false
	}
	first, o.told = !o.told, true
	return o.Conflict, true, first
}

// other returns what is known of another label, which may be new; nil if there are too many. Called
// with mu held.
func (l *labels) other(job string, tick time.Time, label string) *other {
	o := l.others[label]
	if o != nil || len(l.others) >= maxOthers {
		return o
	}
	if l.others == nil {
		l.others = make(map[string]*other)
	}
	o = &other{Conflict: Conflict{Job: job, Own: l.own, Other: label}, first: tick}
	l.others[label] = o
	return o
}

// due reports whether the nodes should be asked for the label: once in a rollout.
func (l *labels) due(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked.IsZero() {
		l.asked = l.began
	}
	if now.Sub(l.asked) < rollout {
		return false
	}
	l.asked = now
	return true
}

// observe reads the label of the last grant from the outcome of an acquisition.
func (l *labels) observe(ctx context.Context, lease *redlock.Lease, err error) {
	var done *redlock.DoneError
	switch {
	case err == nil:
		before := lease.Previous()
		l.report(ctx, before.Granted, before.Label, before.Identity)
	case errors.As(err, &done):
		l.report(ctx, done.Granted, done.Label, done.Identity)
	}
}

// ask reads the label of the last grant in the background, for a replica that does not come to
// acquire: another one holds the lease, or leads.
func (l *labels) ask() {
	s := l.job.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started == nil || !l.due(s.cfg.clock.Now()) {
		return
	}
	ctx := s.started
	s.reads.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, s.cfg.tryTimeout)
		defer cancel()
		if last, err := s.q.Sequence(ctx, l.job.key); err == nil {
			l.report(ctx, last.Granted, last.Label, last.Identity)
		}
	})
}

// report reads a label, and reports a conflict.
func (l *labels) report(ctx context.Context, granted int64, label, by string) {
	cfg := l.job.s.cfg
	c, news, first := l.read(l.job.name, time.UnixMilli(granted).In(cfg.location), label, by)
	if !news {
		return
	}
	if first {
		cfg.logger.WarnContext(ctx, "scheduler: a job of this name is run in another way too, and the two take each other's ticks: give each service a "+
			"redlock.WithPrefix of its own, and all replicas of one the same schedule and scheduler.WithLocation",
			"job", c.Job, "own", c.Own, "other", c.Other, "by", c.By, "tick", c.Tick)
	}
	if t := cfg.tracer.conflict; t != nil {
		t.TraceConflict(ctx, TraceConflictData{Conflict: c})
	}
}

// newLabel says what a job is, so that replicas that differ in it can tell.
func newLabel(schedule schedule, table timetable) string {
	parts := []string{program(), schedule.String()}
	if zone := zoneOf(table); zone != "" {
		parts = append(parts, zone)
	}
	switch t := table.(type) {
	case *wallTimes:
		if t.later {
			parts = append(parts, "later")
		}
	case *ownCron:
		parts = append(parts, "gocron.Cron")
	}
	label := strings.Join(parts, "; ")
	if len(label) > redlock.MaxLabelLength {
		sum := fnv.New64a()
		_, _ = sum.Write([]byte(label))
		end := fmt.Sprintf("...#%016x", sum.Sum64())
		label = strings.ToValidUTF8(label[:redlock.MaxLabelLength-len(end)], "") + end
	}
	return strings.ToValidUTF8(label, "?")
}

// zoneOf names the zone of a timetable; empty if it has none.
func zoneOf(table timetable) string {
	switch t := table.(type) {
	case *wallTimes:
		return zoneName(t.zone)
	case *ownCron:
		return zoneName(t.zone)
	}
	return ""
}

// program returns the path of the main package, which two services do not share.
var program = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	switch {
	case !ok:
		return ""
	case info.Path == "command-line-arguments":
		return info.Main.Path
	}
	return info.Path
})

// zoneName names a zone. time.Local is called so on every machine, and is told by its offsets in
// winter and in summer.
func zoneName(zone *time.Location) string {
	if zone != time.Local {
		return zone.String()
	}
	const layout = "-07:00"
	return "Local " + time.Date(2026, time.January, 1, 0, 0, 0, 0, zone).Format(layout) + time.Date(2026, time.July, 1, 0, 0, 0, 0, zone).Format(layout)
}
