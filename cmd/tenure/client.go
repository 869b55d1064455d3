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

// cluster is what a command asks.
type cluster struct {
	*admin.Client

	q *redlock.Quorum
}

// How long commands may take.
const (
	askWithin   = 15 * time.Second
	orderWithin = time.Minute
)

// question is what a command asks of the cluster. What it returns is shown as -o says, also beside
// an error.
type question func(ctx context.Context, c *cluster, args []string) (document, error)

// asks has a command ask the cluster, and take no part in it. One that takes too long says so, also
// where nodes could have told more.
func (p *program) asks(cmd *cobra.Command, f question, options ...func(context.Context) []redlock.Option) *cobra.Command {
	return p.reaches(cmd, askWithin, func(ctx context.Context, c *cluster, args []string) (document, error) {
		d, err := f(ctx, c, args)
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = exit(exitTimedOut, errors.Join(context.Cause(ctx), err))
		}
		return d, err
	}, options...)
}

// limits has a Quorum go by the replicas' TTL and clock skew, which the nodes know: for how long a
// node is quarantined is their affair.
func (p *program) limits(ctx context.Context) []redlock.Option {
	cfg, _, _ := p.reached() // open says what is wrong
	return doctor.AskLimits(ctx, &cfg)
}

// reaches has a command reach the cluster, with options of the Quorum that are asked for.
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

// within has a command show something within --timeout, and end with its context where it is
// interrupted.
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

// reach makes what a command asks, which closes its Quorum. It does no I/O. Log lines are of the
// level and above, see logger.
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

// actor is the user and the host, for those who read who gave an order: user@host, or what --as
// says.
func (p *program) actor() string {
	name := p.lookup("USER")
	if u, err := user.Current(); err == nil {
		name = cmp.Or(u.Username, name)
	}
	host, _ := os.Hostname() // empty with an error
	return cmp.Or(p.as, cleanIdentity(cmp.Or(name, "unknown")+"@"+cmp.Or(host, "unknown-host"), admin.MaxText))
}

// identity is the name of this process on the nodes: leases and lists of nodes show it.
func (p *program) identity() string {
	return cleanIdentity("tenure of "+p.actor(), redlock.MaxIdentityLength)
}

// cleanIdentity is a text without control characters and of so many bytes at most.
func cleanIdentity(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if view.Hidden(r) {
			return '-'
		}
		return r
	}, strings.ToValidUTF8(text, "-"))
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// settleWithin is how long a command waits for nodes that have not answered yet: the first answer
// comes with a connection, and some of them may be gone.
const settleWithin = time.Second

// nodes are as this process and the replicas see them, once all nodes answer, or after a while.
func (c *cluster) nodes(ctx context.Context) []admin.Node {
	doctor.Settled(ctx, c.q, settleWithin, func(n redlock.NodeStatus) bool { return n.Err != nil && !n.Reachable })
	return c.Nodes(ctx)
}
