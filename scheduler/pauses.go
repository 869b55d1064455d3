package scheduler

import (
	"context"
	"time"

	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/pause"
	"github.com/tenure-dev/tenure/internal/register"
)

// floor is the end of the pauses that were read, of which it tells.
func (j *job) floor(ctx context.Context, states []register.State) (time.Time, error) {
	own, err := pause.Parse(states[0])
	if err != nil {
		return time.Time{}, err
	}
	all, err := pause.Parse(states[1])
	if err != nil {
		return time.Time{}, err
	}
	now, of, is := j.s.now(), own, PauseTrace{}
	if !own.Active(now) {
		of = all
	}
	if of.Active(now) {
		is = PauseTrace{Job: j.name, Paused: true, All: !own.Active(now), Since: of.Since, Until: of.Until, By: of.By, Reason: of.Why}
	}
	j.pauses.become(ctx, is)
	floor := later(own.Floor(), all.Floor())
	j.mu.Lock()
	j.view.floor = floor
	j.mu.Unlock()
	return floor, nil
}

// stillRuns reads the pauses again, and returns an error if a run is paused.
func (j *job) stillRuns(ctx context.Context, of joblog.Run) error {
	states, err := j.pause.Read(ctx, j.s.pauseAll)
	if err != nil {
		return err
	}
	floor, err := j.floor(ctx, states)
	at := of.Tick
	if of.Why == joblog.Backfill { // that tick was due long ago: the backfill waits for the end of the pause
		at = j.s.now()
	}
	if err == nil && !at.After(floor) {
		return &SkipError{Job: j.name, Tick: j.s.local(of.Tick), Count: 1, Reason: SkipPaused}
	}
	return err
}

// tellPause tells of a pause that is new to this replica, or has ended.
func (j *job) tellPause(ctx context.Context, is PauseTrace) {
	is.Job = j.name
	log := j.s.cfg.logger
	if is.Paused {
		args := []any{"job", is.Job, "by", is.By, "why", is.Reason, "since", is.Since, "all_jobs", is.All}
		if !is.Until.IsZero() {
			args = append(args, "until", is.Until)
		}
		log.WarnContext(ctx, "scheduler: a job is paused: its ticks are skipped, and not run later", args...)
	} else {
		log.DebugContext(ctx, "scheduler: a job is not paused any more, or this replica runs none of its ticks", "job", is.Job)
	}
	if t := j.s.cfg.tracer.Pause; t != nil {
		t(ctx, is)
	}
}
