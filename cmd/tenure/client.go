package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/cmd/tenure/internal/doctor"
	"github.com/tenure-dev/tenure/internal/view"
	"github.com/tenure-dev/tenure/redlock"
)

// cluster is the client and the Quorum of a command.
type cluster struct {
	*admin.Client

	q *redlock.Quorum
}

// The default of --timeout for commands that ask, and for commands that give an order.
const (
	askWithin   = 15 * time.Second
	orderWithin = time.Minute
)

// question asks the cluster and returns the document to show, in the form of -o. A document that
// comes with an error is shown too.
type question func(ctx context.Context, c *cluster, args []string) (document, error)

// asks makes cmd ask the cluster without taking part in it. If the time runs out, the error says
// so, even if f returned another error, such as one about the nodes, or none and a part.
func (p *program) asks(cmd *cobra.Command, f question, options ...func(context.Context) []redlock.Option) *cobra.Command {
	return p.reaches(cmd, askWithin, func(ctx context.Context, c *cluster, args []string) (document, error) {
		d, err := f(ctx, c, args)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = exit(exitTimedOut, errors.Join(context.Cause(ctx), err))
		}
		return d, err
	}, options...)
}

// limits returns options that make a Quorum use the TTL and the clock skew of the replicas, as the
// nodes know them. The length of a quarantine depends on the settings of the replicas.
func (p *program) limits(ctx context.Context) []redlock.Option {
	cfg, _, _ := p.reached() // open reports the error
	return doctor.AskLimits(ctx, &cfg)
}

// reaches makes cmd connect to the cluster. The functions options return further options of its
// Quorum.
func (p *program) reaches(cmd *cobra.Command, most time.Duration, f question, options ...func(context.Context) []redlock.Option) *cobra.Command {
	return p.within(cmd, most, func(ctx context.Context, args []string) error {
		var opts []redlock.Option
		for _, ask := range options {
			opts = append(opts, ask(ctx)...)
		}
		c, err := p.reach(levelOff, opts...)
		if err != nil {
			return err
		}
		defer c.q.Close()
		d, err := f(ctx, c, args)
		if err = denied(c.q, err); d != nil {
			err = cmp.Or(err, p.show(d))
		}
		return err
	})
}

// within makes cmd show something within --timeout, which is most by default. A signal that asks
// tenure to end ends the context of do, and sets the exit code.
func (p *program) within(cmd *cobra.Command, most time.Duration, do func(ctx context.Context, args []string) error) *cobra.Command {
	timeout := p.shows(cmd).Flags().Duration("timeout", most, "how long the command may take in all")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, relay := newRelay(cmd.Context())
		defer relay.stop()
		ctx, cancel := context.WithTimeoutCause(ctx, *timeout, fmt.Errorf("--timeout %v has passed: %w", *timeout, context.DeadlineExceeded))
		defer cancel()
		err := do(ctx, args)
		if ended, is := errors.AsType[*exitError](context.Cause(ctx)); is && err != nil {
			return exit(ended.code, err)
		}
		return err
	}
	return cmd
}

// reach makes the cluster of a command. The caller closes its Quorum. It does no I/O. Log lines
// have the level or above, see logger.
func (p *program) reach(level slog.Level, opts ...redlock.Option) (*cluster, error) {
	q, err := p.open(level, append(opts, redlock.WithIdentity(p.identity()))...)
	if err != nil {
		return nil, err
	}
	c, err := admin.New(q, admin.WithActor(p.actor()), admin.WithLogger(p.logger(level)))
	if err != nil {
		_ = q.Close()
		return nil, err
	}
	return &cluster{c, q}, nil
}

// actor returns the name of the person that gives an order: the value of --as, or user@host.
func (p *program) actor() string {
	name := p.lookup("USER")
	if u, err := user.Current(); err == nil {
		name = cmp.Or(u.Username, name)
	}
	host, _ := os.Hostname() // it is empty if there is an error
	return cmp.Or(p.as, cleanIdentity(cmp.Or(name, "unknown")+"@"+cmp.Or(host, "unknown-host"), admin.MaxText))
}

// identity returns the name of this process on the nodes, which leases and lists of nodes show.
func (p *program) identity() string {
	return cleanIdentity("tenure of "+p.actor(), redlock.MaxIdentityLength)
}

// cleanIdentity returns text without control characters, cut to most bytes.
func cleanIdentity(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if view.Hidden(r) {
			return '-'
		}
		return r
	}, strings.ToValidUTF8(text, "-"))
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// settleWithin is how long a command waits for nodes that have not answered yet. The first answer
// of a node takes a connection, and some nodes may be down.
const settleWithin = time.Second

// nodes returns the nodes as this process and the replicas see them. It returns when all nodes have
// answered, and after settleWithin at the latest.
func (c *cluster) nodes(ctx context.Context) []admin.Node {
	doctor.Settled(ctx, c.q, settleWithin, func(n redlock.NodeStatus) bool { return n.Err != nil && !n.Reachable })
	return c.Nodes(ctx)
}
