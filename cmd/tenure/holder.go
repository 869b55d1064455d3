package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tenure-dev/tenure/internal/view"
	"github.com/tenure-dev/tenure/redlock"
)

func newHolder(p *program) *cobra.Command {
	return p.asks(&cobra.Command{
		Use:   "holder NAME",
		Short: "Who holds a key, an election or the lease of a job",
		Long: `Who holds a key on a quorum of nodes, with its fencing token and for how long unless it is extended.
NAME is that of redlock.Quorum.Acquire: election/NAME is the lease of an election, and job/NAME that
of a job. The code is 66 if nobody has it. It is information: it may be out of date when it is
printed.`,
		Example: `  tenure holder reports/nightly
  tenure holder election/poller
  tenure holder job/nightly-report -o json`,
	}, func(ctx context.Context, c *cluster, args []string) (document, error) {
		h, err := c.q.Holder(ctx, args[0])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", quoted(args[0]), err)
		}
		d := holderDocument{
			Now: now(), Key: h.Key, Identity: h.Identity, Payload: h.Payload, Token: view.Number(h.FencingToken), Nodes: h.Nodes,
		}
		if h.TTL != redlock.NoExpiry {
			d.LeaseLeft = view.Span(h.TTL)
		}
		return d, nil
	})
}

// holderDocument is the output of `tenure holder`.
type holderDocument struct {
	Now       view.Time   `json:"now"`
	Key       string      `json:"key"`
	Identity  string      `json:"identity"`
	Payload   string      `json:"payload"`
	Token     view.Number `json:"token"`
	LeaseLeft view.Span   `json:"lease_left_ms"` // null for a key that does not expire, which is not a lease
	Nodes     int         `json:"nodes"`
}

func (d holderDocument) text(w *page) {
	left := "never: this is no lease, but a key that something else wrote"
	if d.LeaseLeft != 0 {
		left = "in " + spanOf(d.LeaseLeft) + ", unless it is extended"
	}
	rows := [][]string{
		{"key", d.Key}, {"holder", d.Identity}, {"ends", left}, {"token", fmt.Sprint(d.Token)}, {"nodes", fmt.Sprint(d.Nodes)},
	}
	if d.Payload != "" {
		rows = append(rows, []string{"payload", d.Payload})
	}
	w.table(nil, rows)
}
