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

// resultLooks are the looks of the results of orders. Other results are failures.
var resultLooks = map[string]markup{"done": "ok", "taken": "running", "unknown": "none"}

func (d *ordersDoc) draw(p *page) markup {
	rows := each(d.Orders, "\n", func(o view.Order) markup {
		at, target := choice(o.At.IsZero(), o.Answered, o.At), jobLink(o.Target)
		switch {
		case o.Target == "":
			target = "all jobs"
		case o.Kind == string(admin.OrderResign):
			target = electionLink(o.Target)
		}
		result := choice(o.Result == "", st("none", "no answer"), st(either(resultLooks[o.Result], "failing"), escaped(words(o.Result))))
		details := escaped(words(o.Detail)) + when(o.TakenBy != "", ` <span class="sub">by %s</span>`, name(o.TakenBy))
		return m(`<tr id="order-%s" data-id="%s" data-kind="%s" data-result="%s">`, o.ID, o.ID, o.Kind, o.Result) +
			td("Given", m(`%s <span class="sub">%s</span>`, clock(at), ago(at))) + th("Who", name(o.By)) + td("What", escaped(words(o.Kind))) + td("Of", target) +
			cut("Why", m("<q>%s</q>", visible(o.Why))) + td("Came of it", result) + cut("Details", either(details, none)) + num("Nodes", o.Sources) + "</tr>"
	})
	told := table(` id="orders"`, "", rows, "Given", "Who", "What", "Of", "Why", "Came of it", "Details", ">Nodes")
	return m(`<div class="title"><h1>Orders</h1><span class="soft">a log, and no evidence: who gave an order is what its process said</span>%s</div>
`, when(p.Acts, `<span class="acts">%s</span>`, pauseAll+resumeAll)) + p.or(when(rows != "", "<section>%s</section>", told), partOrders,
		m(`<p class="card empty" id="empty-orders">No order was given in the last 40 days, here or with the command. %s</p>`, when(p.Acts, "Orders are on the pages of jobs and elections.")))
}
