package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"strings"
	"syscall"
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
func (p *program) asks(cmd *cobra.Command, f question, options ...moreOptions) {
	p.reaches(cmd, askWithin, func(ctx context.Context, c *cluster, args []string) (document, error) {
		d, err := f(ctx, c, args)
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = exit(exitTimedOut, errors.Join(context.Cause(ctx), err))
		}
		return d, err
	}, options...)
}

// moreOptions asks for options of a Quorum.
type moreOptions func(context.Context) ([]redlock.Option, error)

// limits has a Quorum go by the replicas' TTL and clock skew, which the nodes know: for how long a
// node is quarantined is their affair.
func (p *program) limits(ctx context.Context) ([]redlock.Option, error) {
	cfg, err := p.examined()
	if err != nil {
		return nil, err
	}
	return doctor.AskLimits(ctx, cfg).Options(p.connection.leaseTTL()), nil
}

// reaches has a command reach the cluster.
func (p *program) reaches(cmd *cobra.Command, most time.Duration, f question, options ...moreOptions) {
	p.within(cmd, most, func(ctx context.Context, args []string) error {
		var opts []redlock.Option
		for _, ask := range options {
			more, err := ask(ctx)
			if err != nil {
				return err
			}
			opts = append(opts, more...)
		}
		c, err := p.reach(levelOff, opts...)
		if err != nil {
			return err
		}
		defer c.q.Close()
		d, err := f(ctx, c, args)
		err = denied(c.q, err)
		if d != nil {
			if unwritten := p.show(d); err == nil {
				err = unwritten
			} else if unwritten != nil {
				err = exit(exitCode(err), errors.Join(err, unwritten)) // what came of it says more
			}
		}
		return err
	})
}

// within has a command show something within --timeout, and end with its context where it is
// interrupted.
func (p *program) within(cmd *cobra.Command, most time.Duration, do func(ctx context.Context, args []string) error) {
	p.shows(cmd)
	timeout := cmd.Flags().Duration("timeout", most, "how long the command may take in all")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, stop := interruptible(cmd.Context())
		defer stop()
		ctx, cancel := context.WithTimeoutCause(ctx, *timeout, fmt.Errorf("--timeout %v has passed: %w", *timeout, context.DeadlineExceeded))
		defer cancel()
		err := do(ctx, args)
		if by, is := errors.AsType[*signalError](context.Cause(ctx)); is && err != nil {
			return exit(exitSignal+int(by.signal), err)
		}
		return err
	}
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

// interruptible ends with the first signal that is to end tenure, with the signal in its cause.
func interruptible(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	r := newRelay(cancel)
	return ctx, func() {
		r.stop()
		cancel(nil)
	}
}

// signalError is the cause with which a signal ends a command, or the wait for a lease.
type signalError struct{ signal syscall.Signal }

func (e *signalError) Error() string { return "ended by the signal " + e.signal.String() }

// actor is the user and the host, for those who read who gave an order: user@host, or what --as
// says.
func (p *program) actor() string {
	if p.as != "" {
		return p.as
	}
	name, found := p.lookup("USER")
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	} else if !found || name == "" {
		name = "unknown"
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown-host"
	}
	return cleanIdentity(name+"@"+host, admin.MaxText)
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
