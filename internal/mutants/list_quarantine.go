package main

// quarantineMutants break how long a server process is kept out.
var quarantineMutants = []Mutant{
	{
		Name:   "quarantine-without-ttl",
		Rule:   "The quarantine outlasts the longest TTL.",
		File:   "redlock/vouch.go",
		Old:    "longest := max(c.maxTTL, 2*c.clockSkew) + c.clockSkew",
		New:    "longest := 2*c.clockSkew + c.clockSkew",
		Checks: []Check{tests(redlock, "TestGateNewClientGoesByUptime", "TestQuarantineOutlastsWhatAServerForgot")},
	},
	{
		Name:   "quarantine-without-skew",
		Rule:   "The quarantine outlasts the allowance for clock skew beyond that, for the order of tokens.",
		File:   "redlock/vouch.go",
		Old:    "longest := max(c.maxTTL, 2*c.clockSkew) + c.clockSkew",
		New:    "longest := c.maxTTL",
		Checks: []Check{tests(redlock, "TestQuarantineOutlastsWhatAServerForgot")},
	},
	{
		Name:   "quarantine-without-drift",
		Rule:   "The quarantine is counted by a clock that may be fast by the drift.",
		File:   "redlock/vouch.go",
		Old:    "float64(longest)*(1+c.drift)",
		New:    "float64(longest)",
		Checks: []Check{tests(redlock, "TestGateAllowsForAFastClock")},
	},
	{
		Name:   "quarantine-by-uptime-only",
		Rule:   "Who sees that a server was restarted counts the quarantine by its own clock: the uptime is a wall clock's.",
		File:   "redlock/vouch.go",
		Old:    "(promoted || another && !first)",
		New:    "promoted",
		Checks: []Check{tests(redlock, "TestGateWitnessOfARestartGoesByItsOwnClock")},
	},
}
