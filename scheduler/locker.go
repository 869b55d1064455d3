package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/internal/timetable"
	"github.com/tenure-dev/tenure/redlock"
)

// Defaults and bounds of a Locker.
const (
	// DefaultMinHold is longer than the try timeout plus the difference between clocks that NTP
	// keeps, which is well under a second.
	DefaultMinHold = 2 * time.Second
	// DefaultTryTimeout leaves room for a few rounds to slow nodes, which have at most 500 ms each
	// by default. It is shorter than any interval that is worth locking.
	DefaultTryTimeout = time.Second
	// MinTryTimeout is about one round trip within a region.
	MinTryTimeout = 10 * time.Millisecond
)

// WithMinHold keeps a job's lease from other replicas for at least d, even if the job is done
// sooner: then the lease is not freed, but its TTL is shortened to what is left of d. Default:
// DefaultMinHold, 2 s. Not negative, and below the TTL, and so below a day.
//
// d must be longer than the replicas' clocks differ and an attempt may take (WithTryTimeout),
// together. Otherwise a quick job may run more than once for a tick. d must also be SHORTER THAN
// THE SHORTEST INTERVAL of the jobs, less these two. Otherwise their next tick is refused as well:
//
//	clock difference between replicas + try timeout  <  d  <  shortest interval of any job
//
// Zero frees the lease as soon as the job is done. Use it only for jobs that always take longer
// than these two.
func WithMinHold(d time.Duration) LockerOption {
	return option(func(c *config) error {
		c.minHold = d
		return timetable.Refuse(d < 0, "WithMinHold", "%v is negative; zero frees the lease when the job is done", d)
	})
}

// WithTryTimeout bounds the one attempt that Locker.Lock makes. Default: DefaultTryTimeout, 1 s. At
// least MinTryTimeout, 10 ms, and at most MaxTimeout, a day. It is not a time to wait for the
// holder, which Lock never does. gocron schedules a job's next tick only after Lock has returned,
// so keep it below the shortest interval.
func WithTryTimeout(d time.Duration) LockerOption {
	return option(func(c *config) error {
		c.tryTimeout = d
		return timetable.Within("WithTryTimeout", d, MinTryTimeout, MaxTimeout)
	})
}

var _ gocron.Locker = (*Locker)(nil)

// Locker lets one replica at a time run a job, by a lease on the job's name. Make one with
// NewLocker, and pass it to gocron.WithDistributedLocker or gocron.WithDistributedJobLocker. It
// does less than a [Scheduler]:
//
//   - It does not compare ticks. A replica that is late, or that has the tick wait
//     (gocron.LimitModeWait), runs the tick again if the lease is free by then. That is why there
//     is a minimum hold: [WithMinHold]. A job whose ticks come in shorter intervals than that loses
//     some.
//   - The task of a running job is not told that its lease was lost. For a Locker of your own that
//     wraps this one, [Lock.Lease] has the lease's token and context.
//   - Ticks that come while no quorum is in reach, or while a dead replica's lease runs out, are
//     lost.
//   - Jobs whose ticks differ between replicas have nothing to agree on: gocron.DurationJob counts
//     from each replica's start unless gocron.WithStartAt aligns it.
//
// A Locker need not be closed. It is safe for concurrent use, even by several gocron schedulers;
// jobs of the same name exclude each other across them.
type Locker struct {
	q   *redlock.Quorum
	cfg *config

	mu   sync.Mutex
	jobs map[string]pace // guarded by mu; by their names, maxPaces at most
}

// maxPaces bounds how many jobs a Locker knows, for programs that make new names all the time.
const maxPaces = 1024

// pace is when Lock was last called for a job, and since when each call has come less than the
// minimum hold after the one before it.
type pace struct {
	last, since time.Time
	warned      bool            // of calls in too quick succession
	removed     <-chan struct{} // of the job's context; others of the name have paces of their own
}

// NewLocker makes a Locker on a Quorum. The caller closes the Quorum, after gocron's Shutdown.
// NewLocker does no I/O. Errors are *OptionError, for example for an option that does not fit the
// Quorum's own: a minimum hold that is not below its TTL.
func NewLocker(q *redlock.Quorum, opts ...LockerOption) (*Locker, error) {
	cfg, err := newConfig(q, "LockerOption", opts, LockerOption.applyLocker)
	if err != nil {
		return nil, err
	}
	cfg.lease = append(cfg.lease, redlock.WithMinHold(cfg.minHold))
	if err := checkLease(q, cfg.lease); err != nil {
		return nil, err
	}
	return &Locker{q: q, cfg: cfg, jobs: make(map[string]pace)}, nil
}

// Lock makes one attempt to acquire the lease of the job name. gocron calls it when the job is due,
// with the job's context. An error makes gocron skip the tick and reaches the job's
// gocron.AfterLockError.
//
// Lock never waits for the holder, because the tick would then run a second time when the holder is
// done. It returns within the try timeout (WithTryTimeout), or earlier if ctx ends. The lease has
// ctx's values, but does not end with ctx. The gocron.Lock is a *Lock. It is nil if and only if the
// error is not nil.
//
// Errors match redlock's: redlock.ErrHeld when another replica has the job, which is the normal
// case; redlock.ErrNoQuorum when too few nodes answered; redlock.ErrTimeout when nodes or the whole
// attempt took too long; redlock.ErrClosed; or ctx's own error. A name that is empty or too long is
// an *OptionError, and a panic within Lock a *PanicError.
func (l *Locker) Lock(ctx context.Context, name string) (lock gocron.Lock, err error) {
	if err := cmp.Or(timetable.Refuse(l == nil || l.q == nil, "Locker", "was not made by NewLocker"), checkContext(ctx)); err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			lock, err = nil, recovered(ctx, l.cfg.logger, name, p)
		}
	}()
	lease, err := l.try(ctx, name)
	if err != nil {
		err = fmt.Errorf("scheduler: job %q is skipped: %w", name, err)
		level := slog.LevelWarn
		if errors.Is(err, redlock.ErrHeld) || ctx.Err() != nil {
			level = slog.LevelDebug
		}
		l.cfg.logger.Log(ctx, level, "scheduler: job is skipped", "job", name, "error.type", redlock.ErrorType(err), "error", err)
		return nil, err
	}
	return newLock(ctx, name, lease, l.cfg.logger), nil
}

// try makes one attempt within the try timeout.
func (l *Locker) try(ctx context.Context, name string) (*redlock.Lease, error) {
	key, err := keyOf(name)
	if err != nil {
		return nil, err
	}
	l.note(ctx, name, time.Now()) // before the lease: a logger that panics would leave it unreleased
	late := fmt.Errorf("the attempt took longer than %v (WithTryTimeout): %w", l.cfg.tryTimeout, redlock.ErrTimeout)
	within, cancel := context.WithTimeoutCause(ctx, l.cfg.tryTimeout, late)
	defer cancel()
	return l.q.TryAcquire(within, key, l.cfg.lease...)
}

// note notes a call of Lock. Once for each job it logs two faults: the compiler made the job's
// name, and ticks are refused because of the minimum hold. Ticks are refused if calls come less
// than the minimum hold after each other for five minimum holds on end. A job.RunNow soon after a
// tick, and ticks that waited for a place (gocron.LimitModeWait), do so for a moment. Jobs of one
// name, such as those of several schedulers, call at once: only one of them is noted, which gocron
// tells by its context.
func (l *Locker) note(ctx context.Context, name string, now time.Time) {
	l.mu.Lock()
	job, known := l.jobs[name]
	if known && job.removed != ctx.Done() {
		select {
		case <-job.removed:
		default:
			l.mu.Unlock()
			return
		}
	}
	if now.Sub(job.last) >= l.cfg.minHold {
		job.since = now
	}
	hurried := !job.warned && now.Sub(job.since) > 5*l.cfg.minHold
	if !known && len(l.jobs) >= maxPaces { // old calls no longer matter for any comparison
		maps.DeleteFunc(l.jobs, func(_ string, p pace) bool { return now.Sub(p.last) >= l.cfg.minHold })
	}
	if known || len(l.jobs) < maxPaces {
		l.jobs[name] = pace{now, job.since, job.warned || hurried, ctx.Done()}
	}
	l.mu.Unlock()
	if !known && compilerName.MatchString(name) {
		l.cfg.logger.WarnContext(ctx, "scheduler: the job's name is made by the compiler, is shared by functions made in a loop "+
			"and changes between builds: name the job with gocron.WithName", "job", name)
	}
	if hurried {
		l.cfg.logger.WarnContext(ctx, "scheduler: the job's interval is shorter than the minimum hold, so that ticks are refused on every replica: "+
			"set scheduler.WithMinHold to less than the interval, and to more than the replicas' clocks differ and scheduler.WithTryTimeout", "job", name, "min_hold", l.cfg.minHold)
	}
}

// compilerName matches the names that runtime.Func.Name gives anonymous functions (pkg.f.func1,
// pkg.f.func1.2), method values (pkg.T.M-fm) and instances of generic functions (pkg.f[...]).
// gocron uses such a name for a job that was given none.
var compilerName = regexp.MustCompile(`\.func\d+(\.\d+)*$|\.\w+-fm$|\[\.\.\.\]`)

// keyOf returns the key of the lease of the job name.
func keyOf(name string) (string, error) {
	const option, longest = "gocron.WithName", redlock.MaxKeyLength - len("pause/"+KeyPrefix)
	return KeyPrefix + name, cmp.Or(
		timetable.Refuse(name == "", option, "the job has no name: by it replicas agree on what they run, so give it one that stays the same"),
		timetable.Refuse(!utf8.ValidString(name), option, "the job's name %q is not UTF-8: nothing could show it", name),
		timetable.Refuse(len(name) > longest, option, "the job's name has %d bytes, more than %d: give it a shorter one", len(name), longest))
}
