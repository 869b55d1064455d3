package main

// inWeb are the defects of the page.
var inWeb = []defect{
	{"order-from-another-site", "An order from another site is refused.",
		[]edit{{"web/order.go", "if err := h.origins.Check(r); err != nil {", "if err := h.origins.Check(r); false {"}},
		"./web", "TestOrdersAreRefused"},
	{"refusal-tells-the-error", "The error of an authorization is the log's, and no reader sees it.",
		[]edit{{"web/order.go", `"You may not give this order. The log says why."`, "err.Error()"}},
		"./web", "TestOrdersAreRefused"},
	{"form-sent-twice", "A form that is sent twice gives one order.",
		[]edit{{"web/desk.go", "return !g.ended() || g.is.result.Result != resultFailed && g.is.result.Result != resultNobody", "return false"}},
		"./web", "TestFormThatIsSentAgain"},
	{"name-not-escaped", "A name from a replica is text, and no element of the page.",
		[]edit{{"web/markup.go", "return markup(html.EscapeString(", "return markup((func(text string) string { _ = html.EscapeString; return text })("}},
		"./web", "TestHostileNames|TestMarkupEscapes"},
	{"unknown-hides-late", "A job that is late and cannot be asked is late, in the terminal and on the page.",
		[]edit{{"internal/view/job.go", "var States = []string{Failing, Late, Running, Paused, Unknown, OK}", "var States = []string{Unknown, Failing, Late, Running, Paused, OK}"}},
		"./internal/view", "TestStateIsTheWorst"},
}
