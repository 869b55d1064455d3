package scheduler

import (
	"context"
	"errors"
	"sync"

	"github.com/tenure-dev/tenure/redlock"
)

// pauses is the pause of a job as this replica has met with it: by a tick that was refused, until
// one is granted.
type pauses struct {
	job *job

	mu sync.Mutex
	is redlock.Pause // guarded by mu; Version is 0 for none
}

// met takes what came of a tick, and logs a line when a pause begins, changes or ends. Skips
// themselves are no news.
func (p *pauses) met(ctx context.Context, err error) {
	var paused *redlock.PausedError
	if err != nil && !errors.As(err, &paused) {
		return
	}
	var now redlock.Pause
	if paused != nil {
		now = paused.Pause
	}
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
