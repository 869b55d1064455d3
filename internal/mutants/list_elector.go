package main

// electorMutants break elections.
var electorMutants = []Mutant{
	{
		Name:   "leads-after-a-loss",
		Rule:   "IsLeader asks the lease, which compares the clock.",
		File:   "elector/term.go",
		Old:    "return !t.left.Load() && t.lease.Err() == nil }",
		New:    "return !t.left.Load() }",
		Checks: []Check{tests(elector, "TestInvoluntaryEndIsAtTheDeadlineAndBeforeTheNextLeader")},
	},
	{
		Name:   "leads-after-leaving",
		Rule:   "IsLeader says no before the term's context ends.",
		File:   "elector/term.go",
		Old:    "t.left.Store(true)\n\tt.cancel(cause)",
		New:    "t.cancel(cause)\n\ttime.Sleep(time.Millisecond)\n\tt.left.Store(true)",
		Checks: []Check{tests(elector, "TestVoluntaryEndIsInOrder")},
	},
	{
		Name:   "resigned-under-lead",
		Rule:   "The lease is released when lead has returned, not before.",
		File:   "elector/elector.go",
		Old:    "if !returned {",
		New:    "if !returned && false {",
		Checks: []Check{tests(elector, "TestVoluntaryEndIsInOrder", "TestResign")},
	},
	{
		Name:   "released-under-an-overrun",
		Rule:   "The lease of a lead that overruns is left to run out.",
		File:   "elector/elector.go",
		Old:    "t.lease.StopExtending()",
		New:    "_ = t.lease.Release(ctx)",
		Checks: []Check{tests(elector, "TestOverrunningLeadIsNeverReleasedUnder")},
	},
	{
		Name:   "not-extended-while-draining",
		Rule:   "The lease is extended while lead winds down.",
		File:   "elector/elector.go",
		Old:    "gone := t.lease.Context().Done()",
		New:    "t.lease.StopExtending()\n\tgone := t.lease.Context().Done()",
		Checks: []Check{tests(elector, "TestVoluntaryEndIsInOrder")},
	},
	{
		Name:   "term-beside-a-running-lead",
		Rule:   "No term begins while an earlier lead still runs.",
		File:   "elector/elector.go",
		Old:    "\t\t\te.unreturned = led\n",
		New:    "",
		Checks: []Check{tests(elector, "TestOverrunningLeadIsNeverReleasedUnder")},
	},
	{
		Name:   "end-announced-too-early",
		Rule:   "The end of a term is announced when the lease has been released.",
		File:   "elector/elector.go",
		Old:    "err := t.lease.Release(t.ctx)",
		New:    "e.end(t, end)\n\terr := t.lease.Release(t.ctx)",
		Checks: []Check{tests(elector, "TestVoluntaryEndIsInOrder")},
	},
	{
		Name:   "late-election-kept",
		Rule:   "An election that comes after the end of Run's context is given up.",
		File:   "elector/elector.go",
		Old:    "_ = t.lease.Release(ctx) // too late to take office",
		New:    "",
		Checks: []Check{tests(elector, "TestElectionThatComesTooLateIsGivenUp")},
	},
}
