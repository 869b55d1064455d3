package scheduler

import "time"

// lateTick is a tick that was not run at its time, and may still be run.
type lateTick struct {
	tick    time.Time
	at      time.Time     // when it was scheduled; the beginning of its interval if that is not known
	due     time.Time     // the same, or the end of its interval: pauses go by that
	reason  Reason        // it was not run at its time
	expires time.Time     // it is not run after this; zero means no limit
	pause   time.Duration // to be waited first

	retries int // how often an attempt that failed seemed to be in the way
}

// newLateTick describes a tick, scheduled for a time, that was not run then.
func newLateTick(j *job, scheduled time.Time, reason Reason) lateTick {
	late := lateTick{tick: j.ticks.of(scheduled), at: scheduled, due: scheduled, reason: reason}
	switch {
	case reason == SkipOverlap && j.cfg.overlap == OverlapQueue:
	case reason == SkipNotLeader, j.cfg.catchUp == CatchUpNone:
		// A replica that is elected later asks the nodes what was missed.
		late.expires = scheduled.Add(Grace)
	default:
		late.expires = j.expiry(late.tick)
	}
	return late
}

// newLateTicks describes ticks that were not run for one reason.
func newLateTicks(j *job, scheduled []time.Time, reason Reason) []lateTick {
	late := make([]lateTick, len(scheduled))
	for i, at := range scheduled {
		late[i] = newLateTick(j, at, reason)
	}
	return late
}

// newMissedTicks describes ticks that were found missing. Of an interval it is known which moment
// was due if the job has a start. If it has none, any may have been.
func newMissedTicks(j *job, missed []time.Time) []lateTick {
	late := make([]lateTick, len(missed))
	for i, tick := range missed {
		late[i] = newLateTick(j, j.ticks.within(tick), SkipMissed)
		if j.ticks.every > 0 && j.ticks.start.IsZero() {
			late[i].due = tick.Add(j.ticks.every)
		}
	}
	return late
}

func (l lateTick) zero() bool { return l.tick.IsZero() }

// follower reports whether the tick is run only if this replica is elected in time: most of the
// time the leader runs it.
func (l lateTick) follower() bool { return l.reason == SkipNotLeader }

// elsewhere reports whether the tick is run, or overlapped, by a run that goes on.
func (l lateTick) elsewhere() bool { return l.reason == SkipHeld || l.reason == SkipOverlap }

// covers reports whether the other is the same tick, and not wanted for longer.
func (l lateTick) covers(other lateTick) bool {
	return l.tick.Equal(other.tick) && (l.expires.IsZero() || !other.expires.IsZero() && !other.expires.After(l.expires))
}

// wanted reports whether the tick is still to be run, as far as this replica knows.
func (l lateTick) wanted() bool {
	return !l.zero() && !l.follower() && l.reason != SkipHeld && (l.reason != SkipOverlap || l.expires.IsZero())
}

// atExpiry is the reason with which the tick is given up when it expires.
func (l lateTick) atExpiry(catchUp CatchUp) Reason {
	if l.elsewhere() || catchUp == CatchUpNone && !l.follower() {
		return l.reason
	}
	return SkipMissed
}

// maxRetries is how often a tick is asked for again because an attempt that failed seems to be in
// the way: it is taken back within moments, or when a connection has been made again. Else, after
// some two seconds, it was no attempt but a run that was cut short.
const maxRetries = 3

// retryPause is the pause before that: 100 ms, and then four times as long each time.
func retryPause(retries int) time.Duration { return 100 * time.Millisecond << (2 * retries) }

// restFor is the pause after a number of attempts to run a tick: a second, doubled up to a minute.
func restFor(attempts int) time.Duration { return min(time.Second<<min(attempts-1, 6), time.Minute) }
