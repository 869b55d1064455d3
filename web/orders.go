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

func (d *ordersDoc) draw(p *page) markup {
	b := markup(`<h1>Orders</h1>
<p class="sub">Who gave an order is what its process said, and no evidence.</p>
`)
	if p.Acts {
		b += m(`<p class="acts">%s</p>`+"\n", allJobs(true, true))
	}
	rows := each(d.Orders, "\n", func(o orderDoc) markup {
		target := markup("all jobs")
		switch {
		case o.Target == "":
		case o.IsElection():
			target = electionLink(o.Target)
		default:
			target = jobLink(o.Target)
		}
		result := tag("mid", "no answer")
		if o.Result != "" {
			class, known := map[string]string{"done": "ok", "taken": "mid"}[o.Result]
			if !known {
				class = "bad"
			}
			result = tag(class, words(o.Result))
		}
		result += why(words(o.Detail))
		if o.TakenBy != "" {
			result += m(` <span class="sub">by %s</span>`, name(o.TakenBy))
		}
		return m(`<tr id="order-%s" data-id="%s" data-kind="%s" data-result="%s">`, o.ID, o.ID, o.Kind, o.Result) +
			th("Given", m(`%s <span class="sub">%s</span>`, ago(o.When()), clock(o.When()))) + td("Order", escaped(words(o.Kind))) + td("For", target) +
			td("By", name(o.By)) + td("Why", escaped(visible(o.Why))) + td("Result", result) + num("Nodes", o.Sources) + "</tr>"
	})
	switch {
	case rows != "":
		b += table(` id="orders"`, "", rows, "Given", "Order", "For", "By", "Why", "Result", "Nodes")
	case p.Status.Unread("orders"):
		b += unread
	default:
		b += m(`<p class="empty" id="empty-orders">No order was given in the last 40 days, here or with the command. %s</p>`,
			when(p.Acts, "Orders are on the pages of jobs and elections."))
	}
	return b
}
