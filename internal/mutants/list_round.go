package main

// roundMutants break how the answers of a round are counted.
var roundMutants = []Mutant{
	{
		Name:   "quorum-of-half",
		Rule:   "A quorum is more than half of the nodes.",
		File:   "redlock/quorum.go",
		Old:    "need:   nodes/2 + 1,",
		New:    "need:   max(nodes/2, 1),",
		Checks: []Check{tests(redlock, "TestQuorumOutOfReach")},
	},
	{
		Name:   "node-counted-twice",
		Rule:   "A node has one vote in a round, and its first answer is the one that counts.",
		File:   "redlock/round.go",
		Old:    "if r.replies[slot].verdict != pending {",
		New:    "if r.replies[slot].verdict != pending && false {",
		Checks: []Check{tests(redlock, "TestRoundCountsANodeOnce")},
	},
	{
		Name:   "certain-too-early",
		Rule:   "A round does not end before its outcome is certain.",
		File:   "redlock/round.go",
		Old:    "return r.agreed >= r.need || r.missed",
		New:    "return r.agreed >= r.need-1 || r.missed",
		Checks: []Check{tests(redlock, "TestRoundNeverDecidesTooEarly")},
	},
	{
		Name:   "certain-too-late",
		Rule:   "A round has failed as soon as more than N-Q nodes have.",
		File:   "redlock/round.go",
		Old:    "r.missed > len(r.replies)-r.need",
		New:    "r.missed > len(r.replies)-r.need+1",
		Checks: []Check{tests(redlock, "TestRoundEndsWhenItsOutcomeIsCertain")},
	},
	{
		Name:   "failure-certain-too-late",
		Rule:   "An acquisition has failed as soon as more than N-Q nodes have.",
		File:   "redlock/acquire.go",
		Old:    "case count(replies, failed) > len(replies)-q.need:",
		New:    "case count(replies, failed) > len(replies)-q.need+1:",
		Checks: []Check{tests(redlock, "TestAcquireRoundGoesOnUntilItIsClear")},
	},
	{
		Name:   "slow-node-awaited",
		Rule:   "An acquisition is granted as soon as a quorum has granted it, whatever the other nodes do.",
		File:   "redlock/acquire.go",
		Old:    "case granted >= q.need:",
		New:    "case granted == len(replies):",
		Checks: []Check{tests(redlock, "TestTrap04SlowNodeStallsNobody")},
	},
	{
		Name:   "timeout-ignored",
		Rule:   "A node that does not answer costs at most its timeout.",
		File:   "redlock/round.go",
		Old:    "timer := time.NewTimer(timeout)",
		New:    "timer := time.NewTimer(10 * timeout)",
		Checks: []Check{tests(redlock, "TestQuorumOutOfReach")},
	},
}
