package web

import (
	"context"
	"net/http"

	"github.com/tenure-dev/tenure/admin"
)

// orderDoc is an order, and what came of it.
type orderDoc struct {
	ID       string  `json:"id"`
	Kind     string  `json:"kind"`
	Target   string  `json:"target,omitempty"` // a job or an election; empty for all jobs
	By       string  `json:"by"`
	Why      string  `json:"why,omitempty"`
	At       moment  `json:"at,omitzero"`
	Result   string  `json:"result,omitempty"`
	Detail   string  `json:"detail,omitempty"`
	TakenBy  string  `json:"taken_by,omitempty"`
	Answered moment  `json:"answered,omitzero"`
	Run      *runRef `json:"run,omitempty"`
	Sources  int     `json:"sources"`
}

// runRef names a run.
type runRef struct {
	Job   string `json:"job"`
	Token uint64 `json:"token"`
}

func newOrderDoc(o *admin.Order) orderDoc {
	d := orderDoc{
		ID: o.ID, Kind: string(o.Kind), Target: o.Target, By: o.By, Why: o.Why, At: at(o.At), Result: o.Result, Detail: o.Detail,
		TakenBy: o.TakenBy, Answered: at(o.Answered), Sources: o.Sources,
	}
	if o.Run.FencingToken != 0 {
		d.Run = &runRef{o.Run.Job, o.Run.FencingToken}
	}
	return d
}

// IsElection reports whether its target is an election, and not a job.
func (d orderDoc) IsElection() bool { return d.Kind == string(admin.OrderResign) }

// When is when it was given, or else answered.
func (d orderDoc) When() moment {
	if d.At.IsZero() {
		return d.Answered
	}
	return d.At
}

type ordersDoc struct {
	Orders []orderDoc `json:"orders"`
}

func (h *Handler) ordersDoc(_ context.Context, s *snapshot, _ *http.Request) (any, int) {
	d := &ordersDoc{Orders: []orderDoc{}}
	for i := range s.orders {
		d.Orders = append(d.Orders, newOrderDoc(&s.orders[i]))
	}
	return d, http.StatusOK
}
