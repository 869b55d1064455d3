package scheduler

import (
	"context"
	"sync"

	"github.com/tenure-dev/tenure/internal/pause"
)

// pauses is the pause of a job as this replica knows it.
type pauses struct {
	job *job

	mu      sync.Mutex
	is      PauseTrace // guarded by mu; zero for none
	told    PauseTrace // guarded by mu; what log and tracer have heard
	telling bool       // guarded by mu; somebody tells them, until they have heard the last
}

// are takes what was read.
func (p *pauses) are(ctx context.Context, own, all pause.Pause) {
	now := p.job.s.now()
	of, is := own, PauseTrace{}
	if !own.Active(now) && all.Active(now) {
		of, is.All = all, true
	}
	if of.Active(now) {
		is = PauseTrace{Job: p.job.name, Paused: true, All: is.All, Since: of.Since, Until: of.Until, By: of.By, Reason: of.Why}
	} else {
		is = PauseTrace{}
	}
	p.become(ctx, is)
}

// forget is for a replica that runs none of the job's ticks any more.
func (p *pauses) forget(ctx context.Context) { p.become(ctx, PauseTrace{}) }

// by is who has paused the job.
func (p *pauses) by() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.is.By
}

// become notes a pause, or its end, and tells of it: in order, and not under a lock.
func (p *pauses) become(ctx context.Context, is PauseTrace) {
	p.mu.Lock()
	p.is = is
	if p.telling {
		p.mu.Unlock()
		return
	}
	p.telling = true
	for !p.is.same(p.told) {
		is := p.is
		p.told = is
		p.mu.Unlock()
		p.tell(ctx, is)
		p.mu.Lock()
	}
	p.telling = false
	p.mu.Unlock()
}

func (p PauseTrace) same(o PauseTrace) bool {
	return p.Paused == o.Paused && p.Since.Equal(o.Since) && p.Until.Equal(o.Until) && p.All == o.All
}

func (p *pauses) tell(ctx context.Context, is PauseTrace) {
	is.Job = p.job.name
	log := p.job.s.cfg.logger
	if is.Paused {
		args := []any{"job", is.Job, "by", is.By, "why", is.Reason, "since", is.Since, "all_jobs", is.All}
		if !is.Until.IsZero() {
			args = append(args, "until", is.Until)
		}
		log.WarnContext(ctx, "scheduler: a job is paused: its ticks are skipped, and not run later", args...)
	} else {
		log.DebugContext(ctx, "scheduler: a job is not paused any more, or this replica runs none of its ticks", "job", is.Job)
	}
	if t := p.job.s.cfg.tracer.Pause; t != nil {
		t(ctx, is)
	}
}
