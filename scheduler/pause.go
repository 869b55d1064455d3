package scheduler

import (
	"context"
	"errors"
	"sync"

	"github.com/tenure-dev/tenure/redlock"
)

// pauses is the pause of a job as this replica knows it: by a look when it begins to run the job's
// ticks, and by a tick that was refused, until one is granted.
type pauses struct {
	job *job

	mu  sync.Mutex
	is  redlock.Pause // guarded by mu; Version is 0 for none
	met int           // guarded by mu; how many ticks have told of it, or of none
}

// look asks the nodes whether the job is paused, or all jobs are: its next tick may be far away. A
// tick that is asked for meanwhile knows better, and if no quorum answers the next one will.
func (p *pauses) look(ctx context.Context) {
	p.mu.Lock()
	met := p.met
	p.mu.Unlock()
	for _, key := range []string{p.job.key, redlock.AllKeys} {
		is, err := p.job.s.q.Paused(ctx, key)
		if err != nil {
			return
		}
		if is.Active(p.job.s.cfg.clock.Now()) {
			p.mu.Lock()
			old := met != p.met
			p.mu.Unlock()
			if !old {
				p.know(ctx, is)
			}
			return
		}
	}
}

// asked takes what came of a tick, and logs a line when a pause begins, changes or ends. Skips
// themselves are no news.
func (p *pauses) asked(ctx context.Context, err error) {
	var paused *redlock.PausedError
	if err != nil && !errors.As(err, &paused) {
		return
	}
	var now redlock.Pause
	if paused != nil {
		now = paused.Pause
	}
	p.mu.Lock()
	p.met++
	p.mu.Unlock()
	p.know(ctx, now)
}

// know takes over a pause, or that there is none.
func (p *pauses) know(ctx context.Context, now redlock.Pause) {
	if !p.become(ctx, now) {
		return
	}
	log := p.job.s.cfg.logger
	if now.Version == 0 {
		log.InfoContext(ctx, "scheduler: a job is not paused any more", "job", p.job.name)
		return
	}
	args := []any{"job", p.job.name, "by", now.By, "why", now.Reason, "since", now.Since, "all_jobs", now.Key == redlock.AllKeys}
	if !now.Until.IsZero() {
		args = append(args, "until", now.Until)
	}
	log.WarnContext(ctx, "scheduler: a job is paused: its ticks are skipped, and not run later", args...) //mutant:paused-job-unsaid
}

// become notes a pause, or its end, tells the tracer, and reports whether it is another one than
// before. A replica that does not lead any more asks for no tick, and knows of none.
func (p *pauses) become(ctx context.Context, now redlock.Pause) bool {
	p.mu.Lock()
	was := p.is
	p.is = now
	p.mu.Unlock()
	if now.Version == was.Version {
		return false
	}
	if t := p.job.s.cfg.tracer.pause; t != nil {
		t.TracePause(ctx, TracePauseData{Job: p.job.name, Pause: now}) //mutant:pause-untraced
	}
	return true
}
