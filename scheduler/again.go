package scheduler

import (
	"context"

	"github.com/tenure-dev/tenure/redlock"
)

// A tick whose run did not complete is run again at least once, by the backlog: see lock.go.

// addAgain adds the tick of a run that was cut short, if it is to be run at least once: the pause
// before it grows with each attempt.
func (b *backlog) addAgain(late lateTick, attempts int) bool {
	if late.zero() || b.job.cfg.delivery != redlock.AtLeastOnce {
		return false
	}
	again := newLateTick(b.job, late.at, SkipMissed)
	again.due, again.pause = late.due, restFor(attempts)
	return b.add(again)
}

// addRefused is addAgain for a run that a listener refused (BeforeJobRunsSkipIfBeforeFuncErrors),
// so that it is no attempt: refusals in a row are counted here.
func (b *backlog) addRefused(ctx context.Context, late lateTick) {
	if late.zero() {
		return
	}
	n := int(b.refusals.Add(1))
	again := b.addAgain(late, n)
	if again && n == 1 {
		b.job.s.cfg.logger.WarnContext(ctx, "scheduler: a listener refuses to run a job: it is asked again, more seldom each time, "+
			"until it agrees or the tick is too old", "job", b.job.name, "tick", late.at)
	}
	b.job.s.skip(ctx, &SkipError{Job: b.job.name, Tick: late.tick, Reason: SkipRefused, Pending: again})
}
