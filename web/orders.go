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

func (h *Handler) ordersDoc(_ context.Context, s *snapshot, _ *http.Request) any {
	return &ordersDoc{append([]view.Order{}, s.orders...)}
}

func (d *ordersDoc) draw(p *page) markup {
	b := m(`<div class="title"><h1>Orders</h1><span class="soft">a log, and no evidence: who gave an order is what its process said</span>%s</div>
`, when(p.Acts, `<span class="acts">%s</span>`, allJobs(true, true)))
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
		result := st("none", "no answer")
		if o.Result != "" {
			look, known := map[string]markup{"done": "ok", "taken": "running", "unknown": "none"}[o.Result]
			if !known {
				look = "failing"
			}
			result = st(look, escaped(words(o.Result)))
		}
		details := escaped(words(o.Detail))
		if o.TakenBy != "" {
			details += m(` <span class="sub">by %s</span>`, name(o.TakenBy))
		}
		return m(`<tr id="order-%s" data-id="%s" data-kind="%s" data-result="%s">`, o.ID, o.ID, o.Kind, o.Result) +
			td("Given", m(`%s <span class="sub">%s</span>`, clock(when), ago(when))) + th("Who", name(o.By)) + td("What", escaped(words(o.Kind))) + td("Of", target) +
			cut("Why", m("<q>%s</q>", visible(o.Why))) + td("Came of it", result) + cut("Details", either(details, none)) + num("Nodes", o.Sources) + "</tr>"
	})
	switch {
	case rows != "":
		b += "<section>" + table(` id="orders"`, "", rows, "Given", "Who", "What", "Of", "Why", "Came of it", "Details", ">Nodes") + "</section>"
	case p.Status.Unread("orders"):
		b += unread
	default:
		b += m(`<p class="card empty" id="empty-orders">No order was given in the last 40 days, here or with the command. %s</p>`,
			when(p.Acts, "Orders are on the pages of jobs and elections."))
	}
	return b
}
