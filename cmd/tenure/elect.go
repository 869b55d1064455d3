package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenure-dev/tenure/elector"
)

// candidacy is one call of `tenure elect`: its flags and its state.
type candidacy struct {
	child
	once       bool
	maxBackoff time.Duration
}

func newElect(p *program) *cobra.Command {
	c := &candidacy{child: child{p: p}}
	cmd := &cobra.Command{
		Use:   "elect NAME [flags] -- COMMAND [ARG...]",
		Short: "Run a command on the one replica that leads",
		Long: `elect takes part in the election NAME, and runs the command while this replica leads.

The command is ended when the term is, as run ends it with its lease, and never outlives it. Then
elect is a candidate again. When the command ends by itself, the lead is given up, and after a pause
elect is a candidate again: a second at first, and twice as long each time that the command fails.

SIGTERM and SIGINT go to the command, and elect ends with it. docs/steering.md says more.`,
		Example: `  tenure elect webhook-sender -- ./send-webhooks
  tenure elect api --payload http://10.0.0.7:8080 -- ./serve`,
		Args: nameAndCommand,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.run(cmd.Context(), args[0], args[1:])
		},
	}
	f := cmd.Flags()
	c.child.flags(f)
	f.BoolVar(&c.once, "once", false, "end with the command when that ends by itself, with its exit code")
	f.DurationVar(&c.maxBackoff, "max-backoff", time.Minute, "the longest pause after a command that fails")
	return cmd
}

func (c *candidacy) run(ctx context.Context, name string, args []string) error {
	if c.maxBackoff < elector.DefaultBackoffMin || c.maxBackoff > elector.MaxPause {
		return usage(fmt.Errorf("--max-backoff %v is not between %v and %v", c.maxBackoff, elector.DefaultBackoffMin, elector.MaxPause))
	}
	if err := c.take(args); err != nil {
		return err
	}
	ctx, c.relay = newRelay(ctx)
	defer c.relay.stop()
	q, err := c.p.open(slog.LevelWarn)
	if err != nil {
		return err
	}
	defer func() { _ = q.Close() }()
	options := []elector.Option{
		elector.WithTTL(c.ttl), elector.WithLogger(c.p.logger(slog.LevelInfo)), elector.WithBackoff(elector.DefaultBackoffMin, c.maxBackoff), elector.WithPayload(c.payload),
		// The command is killed after the grace period, and then needs a moment to die.
		elector.WithDrainTimeout(c.grace + c.ttl),
	}
	if c.identity != "" {
		options = append(options, elector.WithIdentity(c.identity))
	}
	e, err := elector.New(q, name, options...)
	if err != nil {
		return err
	}
	c.warn()
	err = e.Run(ctx, func(ctx context.Context, term *elector.Term) error { return c.lead(ctx, name, term) })
	switch ended, _ := errors.AsType[*exitError](context.Cause(ctx)); {
	case ended == nil:
		return err
	case is[*signalError](ended):
		return exit(ended.code, err)
	default:
		return ended
	}
}

// lead runs the command for one term. An error makes the elector wait longer before the next
// campaign. If the end of the command ends the candidacy too, lead cancels the candidacy's context
// with an error that has the exit code.
func (c *candidacy) lead(ctx context.Context, name string, term *elector.Term) error {
	result, err := c.carryOut(ctx, elector.KeyPrefix+name, term.Number(), term.Deadline)
	if errors.Is(err, errNotBegun) {
		return nil
	}
	if err != nil {
		if c.once {
			c.relay.cancel(err)
		}
		return err
	}
	byItself := result.Reason == ""
	if c.relay.over() != 0 || c.once && byItself {
		c.relay.cancel(exit(result.Code, nil))
		return nil
	}
	switch {
	case !byItself && ctx.Err() != nil:
		return context.Cause(ctx)
	case !byItself:
		return errors.New("the term was about to end, because the lease was not extended")
	case result.Code != 0:
		return fmt.Errorf("the command ended with exit code %d", result.Code)
	}
	return nil
}
