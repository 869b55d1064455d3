package scheduler

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/tenure-dev/tenure/redlock"
)

// pauses is the pause of a job as this replica knows it: by a look when it begins to run the job's
// ticks, and by a tick that was refused, until one is granted.
type pauses struct {
	job *job

	turn atomic.Int64 // raised by a tick, and when the replica runs none any more: a look of before is old
	off  atomic.Bool  // the replica runs none of the job's ticks

	mu sync.Mutex    // held while tracer and log are told, so that what they hear last is so
	is redlock.Pause // guarded by mu; Version is 0 for none
}

// begin is for a replica that begins to run the job's ticks. It is to look, with that turn.
func (p *pauses) begin() (turn int64) {
	p.off.Store(false)
	return p.turn.Load()
}

// look asks the nodes whether the job is paused, or all jobs are: its next tick may be far away. A
// tick that is asked for meanwhile knows better, and if no quorum answers the next one will.
func (p *pauses) look(ctx context.Context, turn int64) {
	var now redlock.Pause
	for _, key := range []string{p.job.key, redlock.AllKeys} {
		is, err := p.job.s.q.Paused(ctx, key)
		if err != nil {
			return
		}
		if is.Active(p.job.s.cfg.clock.Now()) {
			now = is
			break
		}
	}
	p.know(ctx, now, func() bool { return p.turn.Load() == turn })
}

// asked takes what came of a tick. Skips themselves are no news.
func (p *pauses) asked(ctx context.Context, err error) {
	var paused *redlock.PausedError
	if err != nil && !errors.As(err, &paused) {
		return
	}
	var now redlock.Pause
	if paused != nil {
		now = paused.Pause
	}
	p.turn.Add(1)
	p.know(ctx, now, func() bool { return !p.off.Load() })
}

// forget is for a replica that runs none of the job's ticks any more: it asks for none that could
// end a pause, and knows of none.
func (p *pauses) forget(ctx context.Context) {
	p.off.Store(true)
	p.turn.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.become(ctx, redlock.Pause{})
}

// know takes over a pause, or that there is none, if that is still so, and logs a line when one
// begins, changes or ends.
func (p *pauses) know(ctx context.Context, now redlock.Pause, still func() bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !still() || !p.become(ctx, now) {
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
	log.WarnContext(ctx, "scheduler: a job is paused: its ticks are skipped, and not run later", args...)
}

// become notes a pause, or its end, tells the tracer, and reports whether it is another one than
// before. Called with mu held.
func (p *pauses) become(ctx context.Context, now redlock.Pause) bool {
	was := p.is
	if p.is = now; now.Version == was.Version {
		return false
	}
	if t := p.job.s.cfg.tracer.pause; t != nil {
		t.TracePause(ctx, TracePauseData{Job: p.job.name, Pause: now})
	}
	return true
}
