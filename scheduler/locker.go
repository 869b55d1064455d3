package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"sync"

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
	if err := checkLease(q, cfg.lease); err != nil {
		return nil, err
	}
	return &Locker{q: q, cfg: cfg}, nil
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
		if p := recover(); p != nil {
			lock, err = nil, recovered(ctx, l.cfg.logger, name, p)
		}
	}()
	hurried := l.paces.hurried(name, l.cfg.minHold)
	lease, err := l.try(ctx, name)
	if err != nil {
		if hurried && errors.Is(err, redlock.ErrHeld) {
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
	key, err := keyOf(name)
	if err != nil {
		return nil, err
	}
	l.checkName(ctx, name)
	late := fmt.Errorf("the attempt took longer than %v (WithTryTimeout): %w", l.cfg.tryTimeout, redlock.ErrTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, l.cfg.tryTimeout, late)
	defer cancel()
	return l.q.TryAcquire(ctx, key, l.cfg.lease...)
}

// warnHurried says, once for a job, that its ticks are refused because of the minimum hold.
func (l *Locker) warnHurried(ctx context.Context, name string) {
	if !l.paces.warn(name) {
		return
	}
	l.cfg.logger.WarnContext(ctx, "scheduler: the job's interval is shorter than the minimum hold, so that ticks are refused on every replica: "+
		"set scheduler.WithMinHold to less than the interval, and to more than the replicas' clocks differ and scheduler.WithTryTimeout", "job", name, "min_hold", l.cfg.minHold)
}

// compilerName matches what runtime.Func.Name gives for anonymous functions (pkg.f.func1,
// pkg.f.func1.2), method values (pkg.T.M-fm) and instances of generic functions (pkg.f[...]).
// gocron takes it for the name of a job that was given none.
var compilerName = regexp.MustCompile(`\.func\d+(\.\d+)*$|\.\w+-fm$|\[\.\.\.\]`)

// checkName logs a name that the compiler made, once.
func (l *Locker) checkName(ctx context.Context, name string) {
	if !compilerName.MatchString(name) {
		return
	}
	if _, logged := l.warned.LoadOrStore(name, struct{}{}); logged {
		return
	}
	l.cfg.logger.WarnContext(ctx, "scheduler: the job's name is made by the compiler, is shared by functions made in a loop "+
		"and changes between builds: name the job with gocron.WithName", "job", name)
}

// logSkip reports a skipped tick, which gocron does not.
func (l *Locker) logSkip(ctx context.Context, name string, err error) {
	level := slog.LevelWarn
	if errors.Is(err, redlock.ErrHeld) || ctx.Err() != nil {
		level = slog.LevelDebug
	}
	l.cfg.logger.Log(ctx, level, "scheduler: job is skipped", "job", name, "error.type", redlock.ErrorType(err), "error", err)
}
