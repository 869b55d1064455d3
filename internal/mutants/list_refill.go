package main

// refillMutants break the rules under which an extension puts a lost key back.
var refillMutants = []Mutant{
	{
		Name:   "refill-not-gated",
		Rule:   "A key is put back only on a server process that was vouched for: another may just have voted for somebody else.",
		File:   "redlock/script.go",
		Old:    "elseif ARGV[6] ~= '1' then",
		New:    "elseif false then",
		Checks: []Check{tests(redlock, "TestRefillOnARestartedNodeDoesNotCount")},
		Model:  "refill is not gated",
	},
	{
		Name:   "refill-counts-later",
		Rule:   "Not to count the answer that put a key back is no substitute: the next extension finds the key there.",
		File:   "redlock/script.go",
		Old:    "elseif ARGV[6] ~= '1' then",
		New:    "elseif false then",
		Also:   []Edit{{"redlock/command.go", "if answer == extendOwn || answer == extendRefilled {", "if answer == extendOwn {"}},
		Checks: []Check{tests(redlock, "TestRefillOnARestartedNodeNeverCounts")},
		Model:  "ungated refill counts later",
	},
	{
		Name:   "refill-in-quarantine",
		Rule:   "A client asks nothing back of a server that it keeps out.",
		File:   "redlock/command.go",
		Old:    "refill := \"0\"",
		New:    "refill := \"1\"",
		Checks: []Check{tests(redlock, "TestGateAndExtensions")},
	},
	{
		Name:   "refill-by-any-process",
		Rule:   "The script that puts a key back is a text that only the process vouched for was ever given.",
		File:   "redlock/script.go",
		Old:    "return g.extend, g.teachable",
		New:    "return extendScript, true",
		Checks: []Check{tests(redlock, "TestRefillOnARestartedNodeNeverCounts")},
	},
	{
		Name:   "refill-closes-no-gate",
		Rule:   "An extension whose script the server does not know closes the gate, and is sent again as one that puts nothing back.",
		File:   "redlock/flight.go",
		Old:    "(r.isGated() || r.op == OpExtend && size == 1 && r.convoy == nil)",
		New:    "r.isGated()",
		Checks: []Check{tests(redlock, "TestGateFlushedScriptsAreLoadedAgain")},
	},
	{
		Name:   "lost-key-not-put-back",
		Rule:   "A minority that lost the key gets it back while the lease is valid.",
		File:   "redlock/script.go",
		Old:    "elseif ARGV[6] ~= '1' then",
		New:    "elseif true then",
		Checks: []Check{tests(redlock, "TestMinorityRefillWhileValid")},
	},
}
