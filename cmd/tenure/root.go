package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

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
