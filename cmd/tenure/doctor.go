package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenure-dev/tenure/cmd/tenure/internal/doctor"
	"github.com/tenure-dev/tenure/internal/view"
	"github.com/tenure-dev/tenure/redlock"
)

// doctorWithin is the default of --timeout: doctor tries several ways to reach a node that does not
// answer.
const doctorWithin = time.Minute

func newDoctor(p *program) *cobra.Command {
	return p.within(&cobra.Command{
		Use:   "doctor",
		Short: "What is wrong with the nodes and the way to them, and what to do",
		Long: `Checks every node and the way to it: whether it answers, TLS, user and rights one by one, version,
role and replicas, memory, eviction and persistence, clocks, quarantine, and whether the same server
is listed twice, several servers answer at one address, or replicas have other nodes, another
prefix or another clock skew.

The code is 0 if nothing is wrong, 1 if the worst finding is a warning and 2 if it is a fault, so
that a monitor can run it. It compares the nodes as a process that begins does, and writes nothing.
As the operator of docs/nodes.md, who may list keys and look at users, it sees more: other prefixes
that are in use, and whether a server would drop writes when it loads its append-only file.`,
		Example: `  tenure doctor
  TENURE_NODES_FILE=/run/secrets/nodes tenure doctor -o json`,
	}, doctorWithin, func(ctx context.Context, _ []string) error {
		cfg, _, err := p.reached()
		if err != nil {
			return err
		}
		cfg.Open = func(opts ...redlock.Option) (*redlock.Quorum, error) {
			return p.open(levelOff, append([]redlock.Option{redlock.WithIdentity(p.identity())}, opts...)...)
		}
		q, err := cfg.Open()
		if is[*redlock.OptionError](err) { // a flag is wrong, and no URL
			return err
		}
		_ = q.Close()
		report := doctor.Examine(ctx, &cfg)
		if err := context.Cause(ctx); err != nil {
			return fmt.Errorf("doctor did not come to its end: %w", err)
		}
		return cmp.Or(p.show(doctorDocument{report}), exit(map[doctor.Severity]int{doctor.Fault: exitFaults, doctor.Warning: exitWarnings}[report.Worst], nil))
	})
}

// doctorDocument is the output of `tenure doctor`.
type doctorDocument struct{ *doctor.Report }

func (d doctorDocument) text(w *page) {
	w.table([]string{"NODE", "VOTES", "VERSION", "UP", "CLOCK"}, view.All(d.Nodes, func(n *doctor.Node) []string {
		skew := ""
		if n.ClockSkew != nil {
			skew = time.Duration(*n.ClockSkew * float64(time.Millisecond)).Round(time.Millisecond).String()
		}
		return []string{n.Node, yesOrNo(n.Votes), n.Version, spanOf(n.Uptime), skew}
	}))
	if len(d.Findings) == 0 {
		w.linef("Nothing is wrong with the nodes, under the prefix %s.", quoted(d.Prefix))
		return
	}
	for _, f := range d.Findings {
		w.linef("")
		w.linef("%s %s: %s", strings.ToUpper(string(f.Severity)), f.Code, cmp.Or(strings.Join(f.Nodes, ", "), "all"))
		w.linef("  %s", f.Seen)
		if f.Advice != "" {
			w.linef("  do: %s", f.Advice)
		}
	}
	count := func(s doctor.Severity) int {
		return len(slices.DeleteFunc(slices.Clone(d.Findings), func(f doctor.Finding) bool { return f.Severity != s }))
	}
	w.linef("")
	w.linef("%s, %s, %s.", view.Counted(count(doctor.Fault), "fault"), view.Counted(count(doctor.Warning), "warning"), view.Counted(count(doctor.Note), "note"))
}
