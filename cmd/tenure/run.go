package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenure-dev/tenure/cmd/tenure/internal/supervise"
	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/ticks"
	"github.com/tenure-dev/tenure/redlock"
)

// lockedRun is one call of `tenure run`: its flags and its state.
type lockedRun struct {
	child
	try          bool
	wait         time.Duration
	tickText     string
	oncePer      time.Duration
	atLeastOnce  bool
	attempts     int
	conflictCode int

	key     string
	tick    *ticks.Tick
	granted *ticks.Run // the granted run of the tick; nil without a tick
	coded   bool       // --conflict-exit-code was given
	level   slog.Level // the level of the library's log lines
}

// tickWait is how long run waits for the lease of a tick by default. Without a tick there is no
// limit.
const tickWait = 10 * time.Second

func newRun(p *program) *cobra.Command {
	r := &lockedRun{child: child{p: p}, level: slog.LevelWarn}
	cmd := &cobra.Command{
		Use:   "run NAME [flags] -- COMMAND [ARG...]",
		Short: "Run a command under a lease",
		Long: `run waits for the lease NAME, runs the command while it has the lease, and releases it.

The command never outlives the lease. It gets SIGTERM when the lease is lost, or is about to end
because it cannot be extended, and SIGKILL before the end, with all that it has started. That holds
also if tenure is killed or frozen: a watchdog process sees to it.

With --tick or --once-per a crontab line on many hosts runs once each time. A host that finds its
tick taken ends with 0.

The command's exit code is tenure's. The command finds TENURE_FENCING_TOKEN, TENURE_KEY and
TENURE_DEADLINE_FILE in its environment, and not TENURE_NODES. docs/steering.md says more.`,
		Example: `  tenure run reports/nightly -- ./build-report --full
  tenure run migrate --try -- ./migrate || echo 'another host migrates'
  */5 * * * *  tenure run job/poll --once-per 5m -- ./poll
  30 2 * * *   tenure run job/backup --tick='30 2 * * *' --at-least-once -- ./backup`,
		Args: nameAndCommand,
		RunE: func(cmd *cobra.Command, args []string) error {
			r.coded = cmd.Flags().Changed("conflict-exit-code")
			return r.run(cmd.Context(), args[0], args[1:])
		},
	}
	f := cmd.Flags()
	r.child.flags(f)
	f.BoolVarP(&r.try, "try", "n", false, "do not wait for a holder")
	f.DurationVarP(&r.wait, "wait", "w", 0, "wait no longer for the lease (default no limit; 10s with a tick)")
	f.StringVar(&r.tickText, "tick", "", "run once for this tick on all hosts: the latest of a schedule as in a crontab, or a time (RFC 3339)")
	f.DurationVar(&r.oncePer, "once-per", 0, "run once in each period of this length on all hosts, counted from 1970 in UTC")
	f.BoolVar(&r.atLeastOnce, "at-least-once", false, "with a tick: it is done when the command ends with 0; other hosts wait and take over until then")
	f.IntVar(&r.attempts, "attempts", 3, "how often a tick is tried with --at-least-once, on all hosts together")
	f.IntVarP(&r.conflictCode, "conflict-exit-code", "E", exitHeld, "exit code when another host has the lease (default 75), or had the tick (default 0)")
	cmd.MarkFlagsMutuallyExclusive("try", "wait")
	cmd.MarkFlagsMutuallyExclusive("tick", "once-per")
	return cmd
}

// nameAndCommand checks the arguments of run and elect: a name, --, and a command.
func nameAndCommand(cmd *cobra.Command, args []string) error {
	// Without --, flags of the command would be parsed as flags of tenure.
	if len(args) >= 2 && args[0] != "" && cmd.ArgsLenAtDash() == 1 {
		return nil
	}
	return errors.New("it takes a name, and a command behind --: NAME -- COMMAND")
}

// check validates the flags and computes the tick, if there is one.
func (r *lockedRun) check(name string, args []string) (err error) {
	r.key = name
	switch {
	case r.atLeastOnce && r.tickText == "" && r.oncePer == 0:
		return usage(errors.New("--at-least-once is for a tick: use it with --tick or --once-per"))
	case r.attempts < 1:
		return usage(fmt.Errorf("--attempts %d: the first one counts", r.attempts))
	case r.conflictCode < 0 || r.conflictCode > 255:
		return usage(fmt.Errorf("--conflict-exit-code %d is not between 0 and 255", r.conflictCode))
	}
	var t ticks.Tick
	switch {
	case r.tickText != "":
		t, err = tickOf(r.tickText, time.Now())
	case r.oncePer != 0:
		t, err = tickOfPeriod(r.oncePer, time.Now())
	default:
		return r.take(args)
	}
	if err != nil {
		return usage(err)
	}
	t.Key, t.Attempts, r.tick = name, r.attempts, &t
	// No warnings are logged for a tick. cron mails every line that is written, and while one node
	// is down each host would cause a mail at each tick. An error that ends the run is still
	// written.
	r.level = slog.LevelError
	if r.atLeastOnce {
		t.Delivery = joblog.AtLeastOnce
	}
	if r.wait == 0 && !r.atLeastOnce {
		r.wait = tickWait
	}
	return r.take(args)
}

func (r *lockedRun) run(ctx context.Context, name string, args []string) error {
	if err := r.check(name, args); err != nil {
		return err
	}
	ctx, r.relay = newRelay(ctx)
	defer r.relay.stop()
	var options []redlock.Option
	if r.identity != "" {
		options = append(options, redlock.WithIdentity(r.identity))
	}
	q, err := r.p.open(r.level, options...)
	if err != nil {
		return err
	}
	defer func() { _ = q.Close() }()
	r.warn()
	began := time.Now()
	lease, err := r.acquire(ctx, q)
	if timeout, _ := r.p.nodeTimeout(); err != nil && time.Since(began) > timeout { // no node is late before that
		err = unanswered(q, err)
	}
	if err != nil {
		return r.refused(denied(q, err))
	}
	return r.hold(lease)
}

// acquire waits for the lease as the flags say. With a tick it also has the tick granted.
func (r *lockedRun) acquire(ctx context.Context, q *redlock.Quorum) (*redlock.Lease, error) {
	if r.wait != 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.wait)
		defer cancel()
	}
	payload := redlock.WithPayload(r.payload)
	switch {
	case r.tick != nil:
		run, err := ticks.New(q, *r.tick).Take(ctx, r.try, payload)
		if err != nil {
			return nil, err
		}
		r.granted = run
		return run.Lease, nil
	case r.try:
		return q.TryAcquire(ctx, r.key, payload)
	}
	return q.Acquire(ctx, r.key, payload)
}

// unanswered adds the reason to the error of a wait that timed out before any attempt ended. The
// reason is that too few nodes are healthy, as far as the Quorum knows by then.
func unanswered(q *redlock.Quorum, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) || is[*redlock.HeldError](err) || errors.Is(err, redlock.ErrSplit) || errors.Is(err, redlock.ErrNoQuorum) {
		return err
	}
	if few, is := errors.AsType[*redlock.QuorumError](q.Healthy()); is {
		return fmt.Errorf("%w: %w", err, few)
	}
	return err
}

// refused returns the error of a run that did not get the lease, with its exit code. If another
// host has run the tick, or the job is paused, there is no error unless --conflict-exit-code is
// given.
func (r *lockedRun) refused(err error) error {
	switch {
	case is[*deniedError](err):
		return exit(exitDenied, err)
	case is[*exitError](err): // a signal ended the wait
		return err
	case errors.Is(err, ticks.ErrDone), errors.Is(err, ticks.ErrPaused):
		// This is the normal case on all hosts but one. It logs at a level that is off by default,
		// because cron mails every line that is written.
		r.p.logger(r.level).Info("the tick is not run here", "key", r.key, "tick", r.tick.At, "reason", err)
		if r.coded {
			return exit(r.conflictCode, nil)
		}
		return nil
	case errors.Is(err, redlock.ErrNoQuorum), is[*redlock.ClockError](err):
		return exit(exitNoQuorum, err)
	case errors.Is(err, context.DeadlineExceeded) && !r.coded:
		return exit(exitTimedOut, err)
	case errors.Is(err, redlock.ErrHeld), errors.Is(err, redlock.ErrSplit), errors.Is(err, context.DeadlineExceeded):
		return exit(r.conflictCode, err)
	}
	return err
}

// releaseWait limits the release of the lease, in addition to the timeouts of the nodes. On a node
// that the release does not reach, the lease expires.
const releaseWait = 10 * time.Second

// hold runs the command under the lease, and then ends the tick and releases the lease.
func (r *lockedRun) hold(lease *redlock.Lease) error {
	var more []string
	if r.granted != nil {
		more = []string{envTick + "=" + strconv.FormatInt(r.tick.At.UnixMilli(), 10), envAttempt + "=" + strconv.Itoa(r.granted.Attempt)}
	}
	began := time.Now()
	result, err := r.carryOut(lease.Context(), lease.Key(), lease.FencingToken(), lease.Deadline, more...)
	lost := r.lost(lease, result)
	r.end(lease, result, time.Since(began), err, lost)
	if errors.Is(err, errNotBegun) {
		return exit(exitSignal+int(r.relay.over()), nil)
	}
	return cmp.Or(err, lost, exit(result.Code, nil))
}

// lost returns the error of a command that was ended because its lease was lost or about to expire.
// It returns nil if the command ended for another reason.
func (r *lockedRun) lost(lease *redlock.Lease, result supervise.Result) error {
	if result.Reason != supervise.ReasonDeadline && result.Reason != supervise.ReasonContext {
		return nil
	}
	how := "ended when it was told to"
	if result.Killed {
		how = "was killed"
	}
	why := cmp.Or(lease.Err(), errors.New("the lease was not extended in time"))
	return exit(exitLost, fmt.Errorf("%w: the command %s, before the lease's deadline, with exit code %d", why, how, result.Code))
}

// end records how the tick ended and releases the lease. If a signal came before the command was
// started, end undoes the grant of the tick.
func (r *lockedRun) end(lease *redlock.Lease, result supervise.Result, took time.Duration, err, lost error) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseWait)
	defer cancel()
	if r.granted != nil {
		end := r.granted.Undo
		if !errors.Is(err, errNotBegun) {
			succeeded := err == nil && lost == nil && result.Code == 0
			end = func(ctx context.Context) error { return r.granted.End(ctx, succeeded, took) }
		}
		if err := end(ctx); err != nil && lost == nil {
			r.p.say(fmt.Sprintf("how the tick ended could not be written: with --at-least-once another host may run it again: %v", err))
		}
	}
	if err := lease.Release(ctx); err != nil && lost == nil && !errors.Is(err, redlock.ErrLost) {
		r.p.say(fmt.Sprintf("the release may not have reached all nodes, and others wait for the lease to expire: %v", err))
	}
}
