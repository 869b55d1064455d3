package main

// inHealth are the defects of the probes.
var inHealth = []defect{
	{"outage-ends-all-replicas", "A replica that was ready stays so when nodes fail.",
		[]edit{{"health/part.go", "case p.joined:", "case false:"}},
		"./health", "TestQuorumIsLost"},
	{"refused-replica-is-ready", "A replica with another list of nodes is not ready, whatever was before.",
		[]edit{{"health/part.go", "redlock.ConditionAnotherList", "redlock.ConditionDuplicate"}},
		"./health", "TestRefusedAfterItWasReady"},
	{"probe-hangs", "A probe is answered within the timeout.",
		[]edit{{"health/handler.go", "context.WithTimeout(context.WithoutCancel(ctx), Timeout)", "context.WithTimeout(context.WithoutCancel(ctx), 100*Timeout)"}},
		"./health", "TestPartThatHangs"},
	{"probe-tells-the-error", "Nothing of an error's text is in an answer.",
		[]edit{{"health/report.go", "\treturn \"_OTHER\"\n", "\treturn err.Error()\n"}},
		"./health", "TestNoSecretsInAnswers"},
}
