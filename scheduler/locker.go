package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/redlock"
)

var _ gocron.Locker = (*Locker)(nil)

// Locker lets one replica at a time run a job, by a lease on the job's name. Make one with
// NewLocker, and hand it to gocron.WithDistributedLocker or gocron.WithDistributedJobLocker; the
// package documentation says what it does not promise. It holds nothing to be closed. It is safe
// for concurrent use, by several gocron schedulers too; jobs of the same name exclude each other
// across them.
type Locker struct {
	q      *redlock.Quorum
	cfg    *lockerConfig
	warned sync.Map // names made by the compiler that have been logged; as many as there are functions
	paces  paces
}

// NewLocker makes a Locker of a Quorum, which stays the caller's: close it after gocron's Shutdown.
// It does no I/O. Errors are *OptionError, also for options that do not fit the Quorum's own, such
// as a minimum hold that is not below its TTL.
func NewLocker(q *redlock.Quorum, opts ...LockerOption) (*Locker, error) {
	if q == nil {
		return nil, &OptionError{Option: "q", Reason: "is nil: make a Quorum with redlock.Open or redlock.New"}
	}
	cfg, err := newLockerConfig(opts)
	if err != nil {
		return nil, err
	}
	if err := cfg.checkLease(q, cfg.lease...); err != nil {
		return nil, err
	}
	return &Locker{q: q, cfg: cfg}, nil
}

// checkLease has the Quorum look at what the leases will be acquired with.
func (c *commonConfig) checkLease(q *redlock.Quorum, opts ...redlock.LeaseOption) error {
	err := q.Validate(c.keyPrefix, opts...)
	if invalid := new(redlock.OptionError); errors.As(err, &invalid) {
		return &OptionError{Option: invalid.Option, Reason: invalid.Reason, Err: invalid}
	}
	return err
}

// Lock makes one attempt to acquire the lease of the job that is called name. It is called by
// gocron when the job is due, with the job's context; an error makes gocron skip the tick and
// reaches the job's gocron.AfterLockError.
//
// It never waits for the holder: waiting would run the tick a second time when the holder is done.
// It returns within the try timeout (WithTryTimeout) at most, earlier if ctx ends. The lease has
// ctx's values, and is not ended by ctx. The gocron.Lock is a *Lock, and is nil if and only if the
// error is not.
//
// Errors match redlock's: redlock.ErrHeld when another replica has the job, which is the normal
// case, redlock.ErrNoQuorum when too few nodes answered, redlock.ErrTimeout when nodes or the whole
// attempt took too long, redlock.ErrClosed, or ctx's own error. A name that is empty or too long is
// an *OptionError, a panic below Lock a *PanicError.
func (l *Locker) Lock(ctx context.Context, name string) (lock gocron.Lock, err error) {
	if l == nil || l.q == nil {
		return nil, &OptionError{Option: "Locker", Reason: "was not made by NewLocker"}
	}
	if err := checkContext(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil { //mutant:lock-panics
			lock, err = nil, recovered(ctx, l.cfg.logger, name, p)
		}
	}()
	hurried := l.paces.hurried(name, l.cfg.minHold)
	lease, err := l.try(ctx, name)
	if err != nil {
		if hurried && errors.Is(err, redlock.ErrHeld) { //mutant:short-interval-untold
			l.warnHurried(ctx, name)
		}
		err = fmt.Errorf("scheduler: job %q is skipped: %w", name, err)
		l.logSkip(ctx, name, err)
		return nil, err
	}
	return newLock(ctx, name, lease, l.cfg.logger), nil
}

// try is one attempt within the try timeout.
func (l *Locker) try(ctx context.Context, name string) (*redlock.Lease, error) {
	key, err := l.cfg.key(name)
	if err != nil {
		return nil, err
	}
	l.checkName(ctx, name)
	late := fmt.Errorf("the attempt took longer than %v (WithTryTimeout): %w", l.cfg.tryTimeout, redlock.ErrTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, l.cfg.tryTimeout, late) //mutant:lock-without-try-timeout
	defer cancel()
	return l.q.TryAcquire(ctx, key, l.cfg.lease...) //mutant:lock-waits
}

// warnHurried says, once for a job, that its ticks are refused because of the minimum hold.
func (l *Locker) warnHurried(ctx context.Context, name string) {
	if !l.paces.warn(name) {
		return
	}
	l.cfg.logger.WarnContext(ctx, "scheduler: the job's interval is shorter than the minimum hold, so that ticks are refused on every replica: "+
		"set scheduler.WithMinHold to less than the interval, and to more than the replicas' clocks differ", "job", name, "min_hold", l.cfg.minHold)
}

// maxPaces bounds how many jobs a Locker compares the intervals of.
const maxPaces = 1024

// paces knows when jobs were due last.
type paces struct {
	mu   sync.Mutex
	jobs map[string]*pace // guarded by mu; at most maxPaces
}

// pace is when Lock was called for a job.
type pace struct {
	last, before time.Time
	warned       bool
}

// hurried notes a call of Lock, and reports whether this one and the two before it came less than a
// minimum hold after each other. One such call may be a job.RunNow soon after a tick.
func (p *paces) hurried(name string, minHold time.Duration) bool {
	if minHold == 0 {
		return false
	}
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	job := p.jobs[name]
	if job == nil {
		if len(p.jobs) >= maxPaces {
			// Those that were due long ago are compared with nothing any more.
			maps.DeleteFunc(p.jobs, func(_ string, j *pace) bool { return now.Sub(j.last) >= minHold })
		}
		if len(p.jobs) >= maxPaces {
			return false
		}
		if p.jobs == nil {
			p.jobs = make(map[string]*pace)
		}
		job = &pace{}
		p.jobs[name] = job
	}
	hurried := now.Sub(job.last) < minHold && job.last.Sub(job.before) < minHold
	job.last, job.before = now, job.last
	return hurried
}

// warn reports whether the job has not been warned of yet.
func (p *paces) warn(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	job := p.jobs[name]
	if job == nil || job.warned {
		return false
	}
	job.warned = true
	return true
}

// logSkip reports a skipped tick, which gocron does not.
func (l *Locker) logSkip(ctx context.Context, name string, err error) {
	level := slog.LevelWarn
	if errors.Is(err, redlock.ErrHeld) || ctx.Err() != nil {
		level = slog.LevelDebug
	}
	l.cfg.logger.Log(ctx, level, "scheduler: job is skipped", "job", name, "error.type", redlock.ErrorType(err), "error", err)
}
