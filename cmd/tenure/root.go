package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

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
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
		SilenceErrors:              true,
		Args:                       cobra.ArbitraryArgs,
		RunE:                       misspelled,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := cmd.ValidateFlagGroups(); err != nil {
				return usage(err)
			}
			if err := noneEmpty(cmd); err != nil {
				return usage(err)
			}
			if err := p.checkOutput(); err != nil {
				return err
			}
			return p.fromEnvironment(cmd)
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage(fmt.Errorf("%w: see %s --help", err, cmd.CommandPath()))
	})
	p.connection.flags(root.PersistentFlags())
	root.PersistentFlags().StringVar(&p.log, "log", "", "which lines go to the error stream: debug, info, warn, error or off")
	root.AddGroup(&cobra.Group{ID: groupRun, Title: "Run a command under a lease:"},
		&cobra.Group{ID: groupSee, Title: "See:"}, &cobra.Group{ID: groupOrder, Title: "Give orders:"})
	in := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	in(groupRun, newRun(p), newElect(p))
	in(groupSee, newDoctor(p), newStatus(p), newJobs(p), newRuns(p), newElections(p), newNodes(p), newHolder(p), newOrders(p), newWatch(p))
	in(groupOrder, newPause(p), newResume(p), newRunNow(p), newResign(p), newCancel(p), newBackfill(p))
	in(groupSee, newWeb(p))
	root.AddCommand(newVersion(p))
	// Cobra's help and completion would answer a name that is no command with the help.
	root.SetIn(p.in)
	p.cobras.Writer = p.out
	root.SetOut(&p.cobras)
	root.SetErr(p.err)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	help, _, _ := root.Find([]string{"help"})
	help.RunE = func(_ *cobra.Command, args []string) error {
		cmd, rest, _ := root.Find(args)
		cmd.InitDefaultHelpFlag()
		return misspelled(cmd, rest)
	}
	completion, _, _ := root.Find([]string{"completion"})
	completion.Args, completion.RunE = cobra.ArbitraryArgs, misspelled
	for _, shell := range completion.Commands() {
		shell.Args = exactly()
	}
	return root
}

// misspelled shows the help of a command that only has others, and refuses one that it has not.
func misspelled(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return usage(fmt.Errorf("there is no command %s: see %s --help%s", quoted(args[0]), cmd.CommandPath(), didYouMean(cmd, args[0])))
}

// The groups of commands in the help.
const (
	groupRun   = "run"
	groupSee   = "see"
	groupOrder = "order"
)

func didYouMean(cmd *cobra.Command, word string) string {
	if near := cmd.SuggestionsFor(word); len(near) > 0 {
		return "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return ""
}

// exactly checks the number of arguments, and names them.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		want := "no argument"
		if len(names) > 0 {
			want = strings.Join(names, " ")
		}
		return usage(fmt.Errorf("%s takes %s, and was given %d argument(s): see %[1]s --help", cmd.CommandPath(), want, len(args)))
	}
}

// mayBeEmpty are flags whose empty value means what it says: no payload, no traces, the command's
// own level, and no reason, which has an error of its own.
var mayBeEmpty = []string{"payload", "trace-url", "log", "why"}

// noneEmpty refuses a flag with an empty text. A script whose variable is not set would otherwise
// get what stands for a flag that is left out: a run without a tick, or a pause without an end.
func noneEmpty(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err != nil || f.Value.Type() != "string" || f.Value.String() != "" || slices.Contains(mayBeEmpty, f.Name) {
			return
		}
		err = fmt.Errorf("--%s is empty, as where a variable of a script is not set: give it a value, or leave it out", f.Name)
	})
	return err
}
