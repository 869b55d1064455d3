package web

import (
	"context"
	"net/http"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/view"
)

type ordersDoc struct {
	Orders []view.Order `json:"orders"`
}

func (h *Handler) ordersDoc(_ context.Context, s *snapshot, _ *http.Request) (any, int) {
	d := &ordersDoc{Orders: append([]view.Order{}, s.orders...)}
	return d, http.StatusOK
}

func (d *ordersDoc) draw(p *page) markup {
	b := markup(`<h1>Orders</h1>
<p class="sub">Who gave an order is what its process said, and no evidence.</p>
`)
	if p.Acts {
		b += m(`<p class="acts">%s</p>`+"\n", allJobs(true, true))
	}
	rows := each(d.Orders, "\n", func(o view.Order) markup {
		target, when := markup("all jobs"), o.At
		if when.IsZero() {
			when = o.Answered
		}
		switch {
		case o.Target == "":
		case o.Kind == string(admin.OrderResign):
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
			th("Given", m(`%s <span class="sub">%s</span>`, ago(when), clock(when))) + td("Order", escaped(words(o.Kind))) + td("For", target) +
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
