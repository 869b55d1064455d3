package scheduler

import (
	"context"
	"time"

	"github.com/tenure-dev/tenure/internal/joblog"
)

const (
	// rollout is for how long replicas of two versions of a service may run beside each other.
	rollout = 4 * time.Minute
	// lookEvery is how often the record of a job is read that has nothing to do: 32 jobs with one
	// command a node.
	lookEvery = time.Minute
)

// Conflict is a job of this name that another replica defines in another way: on another schedule,
// or in another zone. The two take each other's ticks, and what one of them calls late the other
// has never heard of. Give each service a redlock.WithPrefix of its own, and all replicas of one
// the same schedule and WithLocation.
type Conflict struct {
	Job   string
	Own   string    // what this replica has
	Other string    // what the nodes have, where a replica that starts finds it
	Since time.Time // when this replica saw that first
	By    string    // who has run the job last; empty if not known
}

// watch compares the definition on the nodes with this replica's. In a rollout the new one is
// another one for a while, and this replica will stop. If it still runs after that, it writes its
// own back: whoever is still there to change it again is in conflict with it.
func (j *job) watch(ctx context.Context, rec joblog.Record) {
	j.mu.Lock()
	now, own := j.s.now(), j.def.Words
	var news *Conflict
	switch {
	case !j.adopted || rec.Words == "":
	case rec.Words == own:
		j.otherSince = time.Time{}
	case j.otherSince.IsZero():
		j.otherSince = now
	}
	again := rec.Words != own && rec.Words == j.replaced // it was replaced, and is back
	if !j.otherSince.IsZero() && (again || now.Sub(j.otherSince) >= rollout) {
		news = &Conflict{Job: j.name, Own: own, Other: rec.Words, Since: j.otherSince, By: rec.Run.By}
		j.adopted = j.adopted && j.replaced != "" // once
	}
	first := news != nil && j.conflict == nil
	if news != nil {
		j.conflict = news
	}
	j.mu.Unlock()
	if news == nil {
		return
	}
	if first {
		j.s.cfg.logger.WarnContext(ctx, "scheduler: a job of this name is defined in another way too, and the two take each other's ticks: give each service a "+
			"redlock.WithPrefix of its own, and all replicas of one the same schedule and scheduler.WithLocation",
			"job", news.Job, "own", news.Own, "other", news.Other, "by", news.By, "since", news.Since)
	}
	if t := j.s.cfg.tracer.Conflict; t != nil {
		t(ctx, *news)
	}
}
