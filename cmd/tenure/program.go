package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tenure-dev/tenure/internal/view"
)

// program is one call of tenure: its streams, its environment and its flags. Nothing else of the
// process is read or written, so that tests call it in process.
type program struct {
	in       io.Reader
	out, err io.Writer
	environ  []string // NAME=value, as os.Environ returns it

	connection connection         // flags of all commands that speak to nodes
	settings   map[string]setting // what was given for flags of all commands, by the flag's variable
	log        string             // of --log
	output     string             // of -o
	as, why    string             // of --as and --why
	wait       bool               // of --wait of an order
	begun      bool               // the command line can be carried out
	unwritten  error              // why something that was to be shown is not
}

// run carries out one command line, without the program's name, and returns the exit code. An error
// is a line on the error stream, and one more with what to do where that is known.
func (p *program) run(ctx context.Context, args []string) int {
	root := newRoot(p)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !p.begun {
		words := strings.Join(strings.Fields(err.Error()), " ") // what cobra suggests is on further lines
		err = usage(fmt.Errorf("%s: see %s --help", words, cmd.CommandPath()))
	}
	if p.unwritten != nil {
		unwritten := fmt.Errorf("the output cannot be written: %w", p.unwritten)
		if code := exitCode(err); code > exitFaults { // what came of it says more
			err = exit(code, errors.Join(err, unwritten))
		} else {
			err = exit(exitUnwritten, unwritten)
		}
	}
	if told, typed := errors.AsType[*exitError](err); err != nil && !(typed && told.err == nil) {
		fmt.Fprintln(p.err, "tenure: "+line(strings.ReplaceAll(view.Said(err), "\n", "; "))) // those of errors.Join
		if advice := advise(cmd.Name(), err); advice != "" {
			fmt.Fprintln(p.err, "tenure: "+advice)
		}
	}
	return exitCode(err)
}

// Write writes what is shown, and notes where it could not be.
func (p *program) Write(text []byte) (done int, err error) {
	done, err = p.out.Write(text)
	p.unwritten = cmp.Or(p.unwritten, err)
	return done, err
}

// lookup returns a variable of the environment; empty for none. As for os/exec, the last of several
// counts.
func (p *program) lookup(name string) string {
	for _, v := range slices.Backward(p.environ) {
		if n, value, ok := strings.Cut(v, "="); ok && n == name {
			return value
		}
	}
	return ""
}

// logger writes lines of a level and above to the error stream: that of --log, or the command's
// own. Commands that ask or order are silent (levelOff), because their errors say what the lines
// would.
func (p *program) logger(byDefault slog.Level) *slog.Logger {
	level, _ := levelOf(p.log, byDefault) // fromEnvironment has looked at it
	if level >= levelOff {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{Level: level}))
}

// levelOff is above all levels.
const levelOff = slog.Level(1 << 16)

// levelOf reads --log.
func levelOf(text string, byDefault slog.Level) (level slog.Level, err error) {
	switch text {
	case "":
		return byDefault, nil
	case "off":
		return levelOff, nil
	}
	if level.UnmarshalText([]byte(text)) != nil {
		err = errors.New("it is none of debug, info, warn, error and off")
	}
	return level, err
}

// newRoot makes the tree of commands of one call.
func newRoot(p *program) *cobra.Command {
	root := &cobra.Command{
		Use:   "tenure",
		Short: "Leases, elections and jobs on a quorum of Valkey nodes",
		Long: `tenure shows and steers replicas that share jobs and elections, and runs commands under a lease.

It reads the nodes, and needs nothing that runs beside them. All processes of a prefix need the
same nodes: give tenure those of the replicas, and their prefix.`,
		Example: `  export TENURE_NODES=valkey://a.example.net,valkey://b.example.net,valkey://c.example.net
  export TENURE_PREFIX=billing
  tenure doctor
  tenure status`,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			err := cmp.Or(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups(), noneEmpty(cmd), p.checkOutput(), p.fromEnvironment(cmd))
			p.begun = err == nil
			return err
		},
	}
	p.connection.flags(root.PersistentFlags())
	root.PersistentFlags().StringVar(&p.log, "log", "", "which lines go to the error stream: debug, info, warn, error or off")
	group := func(title string, commands ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: title, Title: title})
		for _, c := range commands {
			c.GroupID = title
			root.AddCommand(c)
		}
	}
	group("Run a command under a lease:", newRun(p), newElect(p))
	group("See:", newDoctor(p), newStatus(p), newJobs(p), newRuns(p), newElections(p), newNodes(p), newHolder(p), newOrders(p), newWatch(p), newWeb(p))
	group("Give orders:", newPause(p), newResume(p), newRunNow(p), newResign(p), newCancel(p), newBackfill(p))
	root.AddCommand(newVersion(p))
	root.SetIn(p.in)
	root.SetOut(p)
	root.SetErr(p.err)
	return root
}

// mayBeNothing are flags whose empty value means what it says: no payload, no traces, and the
// command's own level.
var mayBeNothing = []string{"payload", "trace-url", "log"}

// noneEmpty refuses a flag with an empty text or no duration. A script whose variable is not set
// would otherwise get what stands for a flag that is left out: a run without a tick, or a pause
// without an end.
func noneEmpty(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		text := f.Value.String()
		duration, _ := time.ParseDuration(text)
		switch kind := f.Value.Type(); {
		case err != nil || slices.Contains(mayBeNothing, f.Name):
		case kind == "string" && strings.TrimSpace(text) == "":
			err = fmt.Errorf("--%s is empty, as where a variable of a script is not set: give it a value, or leave it out", f.Name)
		case kind == "duration" && duration <= 0:
			err = fmt.Errorf("--%s %s is not positive", f.Name, text)
		}
	})
	return err
}
