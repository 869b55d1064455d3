package web

import "github.com/tenure-dev/tenure/admin"

// orderForm is the page on which an order is confirmed, or what came of it.
type orderForm struct {
	order
	Verb   string
	Means  string
	Error  string // why the form was not taken
	Result *resultDoc
}

// resultWords are the results as the page has them.
var resultWords = map[string]string{resultDone: "Done", resultRefused: "Refused", resultNobody: "Not done", resultUnknown: "Not known", resultFailed: "Failed"}

func (f *orderForm) draw(*page) markup {
	of, back := m("job %s", name(f.Target)), query("job", "name", f.Target)
	hidden := func(name markup, value string) markup {
		return m(`<input type="hidden" name="%s" value="%s">`, name, value)
	}
	fields, to := hidden("job", f.Target), m(`<a href="%s">To the job</a>`, back)
	switch {
	case f.Target == "":
		of, back, fields, to = "all jobs", "./", hidden("all", "1"), `<a href="jobs">To the jobs</a>`
	case f.Kind == admin.OrderResign:
		of, back, fields, to = "election "+name(f.Target), "elections", hidden("election", f.Target), `<a href="elections">To the elections</a>`
	}
	b := m(`<section class="verdict state-hold"><h1>%s: %s</h1>`+"\n", f.Verb, of)
	if r := f.Result; r != nil {
		look := markup("failing")
		switch r.Result {
		case resultDone:
			look = "ok"
		case resultUnknown:
			look = "none"
		}
		return b + m(`<p id="result" data-result="%s" role="status">%s <b>%s</b></p>
<p>%s · <a href="orders">To the orders</a></p></section>`, r.Result, st(look, m("%s.", resultWords[r.Result])), r.Text, to)
	}
	fields += hidden("kind", string(f.Kind)) + hidden("once", f.Once)
	if f.Token != 0 {
		fields += hidden("token", decimal(f.Token))
	}
	return b + m(`<p>%s</p>
%s<form id="order" method="post" action="order">
%s
<p><label for="reason">Reason</label> <input id="reason" name="reason" required maxlength="%d" value="%s" autocomplete="off" aria-describedby="why-reason"%s autofocus><span id="why-reason" class="sub">For those who ask later why this was done.</span></p>
%s<p class="acts"><button type="submit">%s</button> <a href="%s">Leave it</a></p>
<p class="sub">The answer takes up to ten seconds or so. The order is logged with your name.</p>
</form></section>`, f.Means, when(f.Error != "", `<p class="card note bad" id="error" role="alert">%s</p>`+"\n", f.Error), fields, admin.MaxText, f.Reason,
		when(f.Error != "", ` aria-invalid="true"`), when(f.Kind == admin.OrderPause, `<p><label for="for">Until</label> <select id="for" name="for"><option value="">it is resumed</option>`+
			`<option value="15m">in 15 minutes</option><option value="1h">in an hour</option><option value="4h">in 4 hours</option><option value="24h">in a day</option></select></p>`+"\n"), f.Verb, back)
}
