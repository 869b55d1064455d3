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

	"github.com/tenure-dev/tenure/cmd/tenure/internal/supervise"
	"github.com/tenure-dev/tenure/internal/view"
)

// program is one call of tenure: its streams, its environment and its flags. It reads and writes
// nothing else of the process, so tests can run it inside their own process.
type program struct {
	in       io.Reader
	out, err io.Writer
	environ  []string // NAME=value, as os.Environ returns it

	connection connection         // flags of every command that reaches the nodes
	settings   map[string]setting // the given flags of all commands, by environment variable
	log        string             // value of --log
	output     string             // value of -o
	as, why    string             // values of --as and --why
	wait       bool               // value of --wait of an order
	begun      bool               // the command line was valid, and the command was started
	unwritten  error              // the first error of writing to out
}

// run carries out one command line, given without the program's name, and returns the exit code. It
// writes an error as one line to the error stream, followed by a line of advice if there is advice
// for that error.
func (p *program) run(ctx context.Context, args []string) int {
	root := newRoot(p)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !p.begun {
		words := strings.Join(strings.Fields(err.Error()), " ") // cobra puts its suggestions on further lines
		err = usage(fmt.Errorf("%s: see %s --help", words, cmd.CommandPath()))
	}
	if p.unwritten != nil {
		unwritten := fmt.Errorf("the output cannot be written: %w", p.unwritten)
		if code := exitCode(err); code > exitFaults { // the command's own code says more
			err = exit(code, errors.Join(err, unwritten))
		} else {
			err = exit(exitUnwritten, unwritten)
		}
	}
	if told, typed := errors.AsType[*exitError](err); err != nil && !(typed && told.err == nil) {
		fmt.Fprintln(p.err, "tenure: "+line(strings.ReplaceAll(view.Said(err), "\n", "; "))) // one line an error
		if advice := advise(cmd.Name(), err); advice != "" {
			fmt.Fprintln(p.err, "tenure: "+advice)
		}
	}
	return exitCode(err)
}

// Write writes to the output stream, and keeps the first error for run.
func (p *program) Write(text []byte) (done int, err error) {
	done, err = p.out.Write(text)
	p.unwritten = cmp.Or(p.unwritten, err)
	return done, err
}

// lookup returns the value of an environment variable, or "" if it is not set. If a variable is set
// more than once, the last value counts, as in os/exec.
func (p *program) lookup(name string) string {
	for _, v := range slices.Backward(p.environ) {
		if n, value, ok := strings.Cut(v, "="); ok && n == name {
			return value
		}
	}
	return ""
}

// logger returns a logger that writes to the error stream. Its level is the value of --log, or
// byDefault if --log is not given. Commands that ask or give orders pass levelOff, because their
// errors already say what the log lines would say.
func (p *program) logger(byDefault slog.Level) *slog.Logger {
	level, _ := levelOf(p.log, byDefault) // fromEnvironment has checked the text
	return slog.New(slog.NewTextHandler(supervise.Aside{To: p.err}, &slog.HandlerOptions{Level: level}))
}

// levelOff is above all levels.
const levelOff = slog.Level(1 << 16)

// levelOf parses the value of --log.
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

// newRoot returns the tree of commands for one call.
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
			err := cmp.Or(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups(), noneEmpty(cmd), p.fromEnvironment(cmd))
			if err == nil && !slices.Contains([]string{"", asTable, asJSON}, p.output) { // "" has a command without -o
				err = fmt.Errorf("-o %s is neither table nor json", quoted(p.output))
			}
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
			switch _, takes, some := strings.Cut(c.Use, " "); { // Use says which arguments a command takes
			case c.Args != nil || strings.HasSuffix(takes, "...]"):
			case some:
				c.Args = cobra.ExactArgs(1)
			default:
				c.Args = cobra.NoArgs
			}
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

// mayBeNothing lists the flags for which an empty value has a meaning: no payload, no trace links,
// and the command's own log level.
var mayBeNothing = []string{"payload", "trace-url", "log"}

// noneEmpty refuses an empty text flag, unless mayBeNothing lists it, and a duration flag that is
// not positive. If a variable of a script is not set, the flag would otherwise look like one that
// was left out: a run would have no tick, or a pause no end.
func noneEmpty(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		text := f.Value.String()
		duration, _ := time.ParseDuration(text)
		switch kind := f.Value.Type(); {
		case err != nil || slices.Contains(mayBeNothing, f.Name):
		case kind == "string" && strings.TrimSpace(text) == "", kind == "stringSlice" && text == "[]":
			err = fmt.Errorf("--%s is empty, as where a variable of a script is not set: give it a value, or leave it out", f.Name)
		case kind == "duration" && duration <= 0:
			err = fmt.Errorf("--%s %s is not positive", f.Name, text)
		}
	})
	return err
}
