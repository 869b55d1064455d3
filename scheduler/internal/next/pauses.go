package scheduler

import (
	"context"
	"sync"

	"github.com/tenure-dev/tenure/internal/pause"
)

// pauses is the pause of a job as this replica knows it.
type pauses struct {
	job *job

	telling sync.Mutex // held while tracer and log are told, so that what they hear last is so
	mu      sync.Mutex
	is      PauseTrace // guarded by mu; zero for none
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
	log := p.job.s.cfg.logger
	switch changed := p.become(ctx, is); {
	case !changed:
	case !is.Paused:
		log.InfoContext(ctx, "scheduler: a job is not paused any more", "job", p.job.name)
	default:
		args := []any{"job", p.job.name, "by", is.By, "why", is.Reason, "since", is.Since, "all_jobs", is.All}
		if !is.Until.IsZero() {
			args = append(args, "until", is.Until)
		}
		log.WarnContext(ctx, "scheduler: a job is paused: its ticks are skipped, and not run later", args...)
	}
}

// forget is for a replica that runs none of the job's ticks any more.
func (p *pauses) forget(ctx context.Context) { p.become(ctx, PauseTrace{}) }

// by is who has paused the job.
func (p *pauses) by() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.is.By
}

// become notes a pause, or its end, tells the tracer, and reports whether it is another one than
// before.
func (p *pauses) become(ctx context.Context, is PauseTrace) bool {
	p.telling.Lock()
	defer p.telling.Unlock()
	p.mu.Lock()
	was := p.is
	p.is = is
	p.mu.Unlock()
	if was.Paused == is.Paused && was.Since.Equal(is.Since) && was.Until.Equal(is.Until) && was.All == is.All {
		return false
	}
	if t := p.job.s.cfg.tracer.Pause; t != nil {
		is.Job = p.job.name
		t(ctx, is)
	}
	return true
}
