package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/view"
)

// ordered makes cmd give an order: it adds the required flag --why, and --as. The function give
// carries out the order and adds the result to the document, which is shown if give succeeds. With
// --wait the command then waits for the end of the order's runs.
func (p *program) ordered(cmd *cobra.Command, kind admin.OrderKind, give func(ctx context.Context, c *cluster, args []string, d *givenDocument) error) *cobra.Command {
	cmd.Flags().StringVar(&p.why, "why", "", "why, for those who see it (required)")
	_ = cmd.MarkFlagRequired("why")
	cmd.Flags().StringVar(&p.as, "as", "", "who gives the order (default user@host); a name for people, and no evidence")
	return p.reaches(cmd, orderWithin, func(ctx context.Context, c *cluster, args []string) (document, error) {
		d := &givenDocument{Now: now(), Kind: string(kind), Target: strings.Join(args, ""), All: len(args) == 0, By: p.actor(), Why: p.why, Going: []*view.Run{}}
		if err := give(ctx, c, args, d); err != nil {
			return nil, err
		}
		if p.wait {
			for _, job := range d.waits {
				if err := c.Wait(ctx, job); err != nil {
					return d, fmt.Errorf("the order was carried out: %w", err)
				}
			}
			d.Waited = true
		}
		return d, nil
	})
}

// takesJobOrAll makes cmd take either the name of a job or --all.
func takesJobOrAll(cmd *cobra.Command) *cobra.Command {
	all := cmd.Flags().Bool("all", false, "all jobs of the prefix, also those that are added later")
	cmd.Args = func(_ *cobra.Command, args []string) error {
		switch {
		case *all && len(args) > 0:
			return errors.New("name a job or give --all, not both")
		case !*all && len(args) != 1:
			return errors.New("name a job, or give --all")
		}
		return nil
	}
	return cmd
}

// jobOrAll returns the target of a command that takes a job or --all.
func jobOrAll(args []string) admin.Target {
	if len(args) == 0 {
		return admin.AllJobs
	}
	return admin.Job(args[0])
}

// givenDocument is the output of an order that was carried out.
type givenDocument struct {
	Now    view.Time   `json:"now"`
	Kind   string      `json:"kind"`
	Target string      `json:"target"`
	All    bool        `json:"all"`
	By     string      `json:"by"`
	Why    string      `json:"why"`
	Order  string      `json:"order"`  // the ID that `tenure orders` shows; null if it is not known
	Run    *view.Run   `json:"run"`    // the run that the order began or ended
	Paused *view.Pause `json:"paused"` // the pause that is in force
	Going  []*view.Run `json:"going"`  // runs that began before the pause and still go on
	Waited bool        `json:"waited"` // the command waited for the runs to end
	Ticks  *view.Fill  `json:"ticks"`  // the ticks of a backfill

	fills string
	waits []string // jobs whose runs --wait waits for
}

func (d *givenDocument) text(w *page) {
	name := quoted(d.Target)
	switch admin.OrderKind(d.Kind) {
	case admin.OrderPause:
		w.linef("%s: paused %s", cmp.Or(d.Target, "all jobs"), pauseWords(w, d.Paused))
		for _, r := range d.Going {
			if d.Waited {
				w.linef("the run of %s by %s has ended", quoted(r.Job), r.Replica)
			} else {
				w.linef("%s had begun before, and goes on: it is run by %s%s; --wait waits for its end", quoted(r.Job), r.Replica, since(w, ", tick ", r.Tick))
			}
		}
	case admin.OrderResume:
		w.linef("%s: resumed; ticks that are due from now on are run", cmp.Or(d.Target, "all jobs"))
		if d.Paused != nil {
			w.linef("it is still paused: %s", pauseWords(w, d.Paused))
		}
	case admin.OrderRunNow:
		w.linef("%s: begun by %s, token %d, order %s", name, d.Run.Replica, d.Run.Token, d.Order)
		if d.Paused != nil {
			w.linef("the job is paused, and was run all the same: %s", pauseWords(w, d.Paused))
		}
	case admin.OrderResign:
		w.linef("%s: the leader has resigned, and its lease is free", name)
		w.linef("where replicas run jobs under this election, runs that it had begun were told to end, and may go on: see tenure jobs")
	case admin.OrderBackfill:
		w.linef("%s: ticks from %s to %s %s", name, w.clock(d.Ticks.From), w.clock(d.Ticks.To), d.fills)
	case admin.OrderCancel:
		w.linef("%s: the context of the run by %s has ended; its task may go on for a while", name, d.Run.Replica)
	}
	if d.Waited && d.Run != nil {
		w.linef("it has ended: see tenure runs %s", d.Target)
	}
}

// rfc3339 lists the formats that time flags accept.
var rfc3339 = []string{time.RFC3339}

func newPause(p *program) *cobra.Command {
	var o admin.PauseOptions
	cmd := takesJobOrAll(&cobra.Command{
		Use:   "pause JOB | --all",
		Short: "Have no replica begin a tick of a job, or of any",
		Long: `When it returns with code 0, no replica begins a tick of the job any more, whatever happens to
replicas and nodes, until it is resumed or the end has come. Ticks that are due meanwhile are
skipped. It takes half a second. A run that had begun before goes on: --wait waits for its end.
The code is 66 if no replica is known to have the job: its name may be misspelled.`,
		Example: `  tenure pause nightly-report --why 'the database moves'
  tenure pause --all --for 1h --why 'maintenance' --wait`,
	})
	lasts := cmd.Flags().Duration("for", 0, "for how long (default until it is resumed)")
	cmd.Flags().TimeVar(&o.Until, "until", time.Time{}, rfc3339, "until when, such as 2006-01-02T15:04:05Z")
	cmd.Flags().BoolVar(&p.wait, "wait", false, "wait for the end of runs that had begun before")
	cmd.Flags().BoolVar(&o.Force, "force", false, "also a job that no replica is known to have")
	cmd.MarkFlagsMutuallyExclusive("for", "until")
	return p.ordered(cmd, admin.OrderPause, func(ctx context.Context, c *cluster, args []string, d *givenDocument) error {
		o.Reason = p.why
		switch {
		case cmd.Flags().Changed("until") && !o.Until.After(time.Now()):
			return usage(fmt.Errorf("--until %v has passed", o.Until))
		case *lasts > 0:
			o.Until = time.Now().Add(*lasts)
		}
		paused, err := c.Pause(ctx, jobOrAll(args), o)
		d.Paused = view.NewPause(paused)
		for _, r := range paused.Running {
			d.Going, d.waits = append(d.Going, view.NewRun(r)), append(d.waits, r.Job)
		}
		return err
	})
}

func newResume(p *program) *cobra.Command {
	return p.ordered(takesJobOrAll(&cobra.Command{
		Use:   "resume JOB | --all",
		Short: "End a pause",
		Long: `Ends the pause of a job, or that of all jobs: a job that is paused both ways stays paused by the
other one. Ticks that are due from now on are run. The code is 66 if it was not paused.`,
		Example: `  tenure resume nightly-report --why 'the database has moved'
  tenure resume --all --why 'done'`,
	}), admin.OrderResume, func(ctx context.Context, c *cluster, args []string, d *givenDocument) error {
		if err := c.Resume(ctx, jobOrAll(args), p.why); err != nil {
			return err
		}
		if still, err := c.Paused(ctx, jobOrAll(args)); err == nil {
			d.Paused = view.NewPause(still)
		}
		return nil
	})
}

func newRunNow(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run-now JOB",
		Short: "Have a replica begin a run of a job now",
		Long: `One run at most is begun, by the leader where the job has an election, and otherwise by any replica
that has it; also if the job is paused. It is no tick of the schedule. It returns when the run has
begun: --wait waits for its end.

Code 70 means that it is not known whether the run was begun: see tenure orders and tenure runs
before you repeat it, or there may be two.`,
		Example: `  tenure run-now nightly-report --why 'the first one lacked data'
  tenure run-now nightly-report --why 'again' --wait --timeout 1h`,
	}
	cmd.Flags().BoolVar(&p.wait, "wait", false, "wait for the end of the run")
	return p.ordered(cmd, admin.OrderRunNow, func(ctx context.Context, c *cluster, args []string, d *givenDocument) error {
		started, err := c.RunNow(ctx, args[0], p.why)
		d.Run, d.Order, d.waits = view.NewRun(started.Run), started.Order, args
		if started.Paused != nil {
			d.Paused = view.NewPause(*started.Paused)
		}
		return err
	})
}

func newResign(p *program) *cobra.Command {
	return p.ordered(&cobra.Command{
		Use:   "resign ELECTION",
		Short: "Have the leader of an election step down",
		Long: `The context of the leader's term ends, and once its work has returned the lease is released, so
that another replica is elected, or the same one again. It returns when that is done. A leader that
was elected meanwhile stays.

Runs of jobs under that election (scheduler.WithElection) are told to end, and are not waited for:
tenure jobs shows those that go on.`,
		Example: `  tenure resign poller --why 'its host is drained'`,
	}, admin.OrderResign, func(ctx context.Context, c *cluster, args []string, _ *givenDocument) error {
		return c.Resign(ctx, args[0], p.why)
	})
}

func newCancel(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cancel JOB",
		Short: "End the run of a job that goes on",
		Long: `The context of the run ends. Its task may go on if it does not look at that: --wait waits for its
end. The run counts as complete, and is not repeated. With --token it is that run and no later one;
without, the one that goes on now.`,
		Example: `  tenure cancel nightly-report --why 'it reads the wrong table'
  tenure cancel nightly-report --token 1764028800123 --why 'it hangs' --wait`,
	}
	token := cmd.Flags().Uint64("token", 0, "fencing token of the run (default that of the one that goes on)")
	cmd.Flags().BoolVar(&p.wait, "wait", false, "wait for the end of the run")
	return p.ordered(cmd, admin.OrderCancel, func(ctx context.Context, c *cluster, args []string, d *givenDocument) error {
		if cmd.Flags().Changed("token") && *token == 0 {
			return usage(errors.New("--token 0 is no run's: give that of the run, or leave it out for the one that goes on"))
		}
		run, err := c.Running(ctx, args[0])
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", quoted(args[0]), err)
		case *token != 0 && *token != run.FencingToken:
			return fmt.Errorf("%s: the run with the token %d does not go on, and the one that does has %d: %w", quoted(args[0]), *token, run.FencingToken, admin.ErrNotRunning)
		}
		d.Run, d.waits = view.NewRun(run), args
		return c.Cancel(ctx, run.ID(), p.why)
	})
}

func newBackfill(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backfill JOB --from TIME --to TIME",
		Short: "Have ticks of a job be run that are past",
		Long: `The ticks of the job's schedule between two times are run, whoever ran them before or did not: one
after the other, on any replica, with the job's delivery; ticks that are due go first. It returns
when the nodes have it, and replicas see it within a minute. It waits for a run of the job that
goes on, for some seconds. The code is 66 where there are no such ticks, or no replica has the job.

A backfill replaces an earlier one that goes on. --stop ends it; so does tenure cancel of one of its
runs.`,
		Example: `  tenure backfill nightly-report --from 2026-03-01T00:00:00Z --to 2026-03-04T00:00:00Z --why 'the source was late'
  tenure backfill nightly-report --stop --why 'enough'`,
	}
	from := cmd.Flags().Time("from", time.Time{}, rfc3339, "the first tick's time, or one before it, such as 2006-01-02T15:04:05Z")
	to := cmd.Flags().Time("to", time.Time{}, rfc3339, "the last tick's time, or one after it")
	stop := cmd.Flags().Bool("stop", false, "end the backfill that goes on")
	cmd.MarkFlagsRequiredTogether("from", "to")
	cmd.MarkFlagsMutuallyExclusive("from", "stop")
	return p.ordered(cmd, admin.OrderBackfill, func(ctx context.Context, c *cluster, args []string, d *givenDocument) error {
		var b admin.Backfill
		var err error
		switch {
		case *stop:
			d.fills = "were left, and are not run"
			b, err = c.StopBackfill(ctx, args[0], p.why)
		case from.IsZero(): // an empty backfill would replace the one that is under way
			return usage(errors.New("give --from and --to, or --stop"))
		default:
			d.fills = "are run, one after the other; tenure jobs shows what is left"
			b, err = c.Backfill(ctx, args[0], *from, *to, p.why)
		}
		d.Ticks = &view.Fill{From: view.At(b.From), To: view.At(b.To)}
		return err
	})
}

// advices maps the admin.OrderError.Reason of an order that failed to advice for the user.
var advices = map[string]string{
	"overlap":       "wait for the run that goes on, or end it with tenure cancel",
	"no_replica":    "see tenure jobs for the names, and tenure doctor for the prefix",
	"no_leader":     "see tenure elections: the leader runs the job, and there is none",
	"no_orders":     "its replicas were told to take no orders (scheduler.Telling)",
	"no_answer":     "see tenure orders for what came of it, and tenure runs, before you repeat it",
	"leader_silent": "it may have resigned: see tenure elections, and its log",
	"not_running":   "see tenure runs",
	"drain_timeout": "its work did not return in time: the lease runs out by itself; see its log",
}

// advise returns the advice for an error of a command. It returns "" if the text of the error says
// enough.
func advise(command string, err error) string {
	if order, is := errors.AsType[*admin.OrderError](err); is && advices[order.Reason] != "" {
		return advices[order.Reason]
	}
	for _, a := range adviceByCode {
		if exitCode(err) == a.code && (a.of == "" || a.of == command) {
			return a.advice
		}
	}
	return ""
}

// adviceByCode is the advice for other errors, by exit code and command. An entry with an empty
// command is for all commands. The first entry that matches counts.
var adviceByCode = []struct {
	code       int
	of, advice string
}{
	{exitDenied, "", "this says nothing of the cluster: tenure doctor names the password or the right"},
	{exitNoQuorum, "", "tenure doctor says what is wrong with the nodes"},
	{exitUnknown, "", "see tenure orders, and ask for its effect before you repeat it"},
	{exitNotFound, "pause", "tenure jobs has the names; --force is for a job to come, and for tenure run job/NAME"},
	{exitNotFound, "resume", "see tenure jobs for what is paused; tenure resume --all ends the pause of all jobs"},
	{exitHeld, "run", "another host has the lease: try again later, or wait for it with --wait"},
	{exitHeld, "", "somebody else did the same at the same time: try again"},
	{exitTimedOut, "run", "give it longer with --wait; tenure doctor says whether the nodes are well"},
	{exitTimedOut, "", "give it longer with --timeout; tenure doctor says whether the nodes are well"},
}

func newOrders(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "orders",
		Short: "Who gave which order, why, and what came of it",
		Long: `The orders that were given last, the newest first. The name of an actor is what its process said: a
log, and no evidence.

The result "nobody" is of an order that no replica took, and that none will. "no answer" is of one
that is under way, or of which nobody has said what came of it: it may be done.`,
		Example: `  tenure orders
  tenure orders --limit 100 -o json`,
	}
	limit := cmd.Flags().Int("limit", 20, "how many at most; nodes keep about 200")
	return p.asks(cmd, func(ctx context.Context, c *cluster, _ []string) (document, error) {
		if *limit < 1 {
			return nil, usage(fmt.Errorf("--limit %d is not positive", *limit))
		}
		all, err := c.Orders(ctx, *limit)
		if err != nil {
			return nil, err
		}
		return ordersDocument{now(), view.All(all, view.NewOrder)}, nil
	})
}

// ordersDocument is the output of `tenure orders`.
type ordersDocument struct {
	Now    view.Time    `json:"now"`
	Orders []view.Order `json:"orders"`
}

func (d ordersDocument) text(w *page) {
	const none = "No order was given under this prefix, as far as the nodes know."
	w.list(none, []string{"GIVEN", "ORDER", "FOR", "BY", "WHY", "RESULT", "TAKEN BY"}, view.All(d.Orders, func(o view.Order) []string {
		return []string{w.ago(o.At), o.Kind, cmp.Or(o.Target, "all jobs"), o.By, o.Why, join(": ", cmp.Or(o.Result, "no answer"), o.Detail), o.TakenBy}
	}))
}
