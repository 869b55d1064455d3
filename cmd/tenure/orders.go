package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tenure-dev/tenure/internal/view"
)

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
		Args: cobra.NoArgs,
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

// ordersDocument is what `tenure orders` shows.
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
