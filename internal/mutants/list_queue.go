package main

// queueMutants break the order in which a node gets its commands.
var queueMutants = []Mutant{
	{
		Name: "release-overtakes",
		Rule: "A release is not sent before what its attempt sent earlier.",
		File: "redlock/node.go",
		Old:  "\tdefault:\n\t\tn.queue = append(n.queue, r)\n\t}",
		New: "\tcase r.op == OpRelease:\n\t\tgo func() {\n" +
			"\t\t\tclient, _ := n.connected()\n" +
			"\t\t\tcommand, _ := r.command(client, nil, true, nil)\n" +
			"\t\t\trep, err := r.parse(client.Do(context.Background(), command))\n" +
			"\t\t\tif err != nil {\n\t\t\t\tn.fail(r, err)\n\t\t\t} else {\n\t\t\t\tn.settle(r, rep)\n\t\t\t}\n\t\t}()\n" +
			"\tdefault:\n\t\tn.queue = append(n.queue, r)\n\t}",
		Checks: []Check{tests(redlock, "TestTrap05ReleaseNeverOvertakesAcquire")},
		Model:  "release overtakes",
	},
	{
		Name:   "ended-attempt-still-sent",
		Rule:   "Once an attempt has ended nothing but releases is sent for it.",
		File:   "redlock/node.go",
		Old:    "case r.isOfAnAttempt() && r.attempt.ended.Load():",
		New:    "case r.isOfAnAttempt() && r.attempt.ended.Load() && false:",
		Checks: []Check{tests(redlock, "TestNothingButReleasesIsSentForAnEndedAttempt")},
	},
	{
		Name:   "stale-request-sent",
		Rule:   "A request that waited for longer than its timeout is not sent.",
		File:   "redlock/node.go",
		Old:    "case now > r.expires:",
		New:    "case now > r.expires && false:",
		Checks: []Check{tests(redlock, "TestRequestsThatWaitedTooLongAreNotSent")},
	},
	{
		Name:   "queue-unbounded",
		Rule:   "What waits for a node is bounded.",
		File:   "redlock/node.go",
		Old:    "\tcase len(n.queue) >= maxQueue:\n",
		New:    "\tcase len(n.queue) >= 2*maxQueue:\n",
		Checks: []Check{{Package: redlock, Tests: []string{"TestQueueIsBounded"}, Dies: "nil pointer dereference"}},
	},
	{
		Name:   "several-connections",
		Rule:   "Open's clients send everything over one connection, in order.",
		File:   "redlock/quorum.go",
		Old:    "o.PipelineMultiplex = -1",
		New:    "o.PipelineMultiplex = 2",
		Checks: []Check{tests(redlock, "TestClientOptionsThatAreNotNegotiable")},
	},
}
