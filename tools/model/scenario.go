package model

// leases is the model without fencing tokens, and so without the second round of an acquisition.
// That round can only delay or prevent a grant, and a grant may be late or missing here anyway. So
// a property that holds without the round holds with it. Nothing in the model grows for ever: it
// needs no limit to the number of attempts, restarts, extensions or ticks.
var leases = Config{Nodes: 3, Attempts: 2, Restarts: -1, Validity: 2, Drift: 1, Gate: 3, Extends: true}

// restarted is leases with one restart, for configurations that have too many states with more.
var restarted = leases.but("", func(c *Config) { c.Restarts = 1 })

// tokens is the model with fencing tokens. A node's counter outlives the attempts, so the numbers
// of attempts and of restarts are limited. The gate is no longer than a lease and the skew. A
// client may take the median of the servers' clocks for one skew too high or too low when it
// proposes a token.
var tokens = Config{
	Nodes: 3, Attempts: 2, Starts: 2, Restarts: 1, Validity: 2, Gate: 3, Skew: 1, Tokens: true, Clocks: [2]int8{-1, 1}, NoStrays: true,
}

// extremes is tokens with proposals as low or as high as they may be, where all would be too many
// states, and for defects that clocks show.
var extremes = tokens.but("", func(c *Config) { c.Extremes = true })

// steady is tokens without restarts, for all that has nothing to do with them.
var steady = tokens.but("", func(c *Config) { c.Restarts = 0 })

// known are the same with clients that know the clocks.
var (
	known       = tokens.but("", func(c *Config) { c.Clocks = [2]int8{} })
	knownSteady = known.but("", func(c *Config) { c.Restarts = 0 })
)

// clockless is the model with fencing tokens in which no clock can be relied on. Counters are kept.
var clockless = Config{
	Nodes: 3, Attempts: 2, Starts: 2, Validity: 1, Tokens: true, NoClocks: true, Clocks: [2]int8{0, 3}, NoStrays: true,
}

// Designs are the configurations in which the protocol must hold.
func Designs() []Config {
	return []Config{
		leases.but("leases", func(*Config) {}),
		restarted.but("leases, two restarts", func(c *Config) { c.Restarts = 2 }),
		restarted.but("leases, three at a time", func(c *Config) { c.Attempts, c.NoStrays = 3, true }),
		restarted.but("leases, four nodes", func(c *Config) { c.Nodes = 4 }),
		restarted.but("leases, five nodes, not extended", func(c *Config) { c.Nodes, c.Extends = 5, false }),
		leases.but("leases, five nodes, no strays", func(c *Config) { c.Nodes, c.NoStrays, c.Restarts = 5, true, 1 }),
		restarted.but("leases, longer times", func(c *Config) { c.NoStrays, c.Validity, c.Drift, c.Gate = true, 3, 2, 5 }),
		restarted.but("leases, keys lost", func(c *Config) { c.Losses = 1 }),
		leases.but("leases, commands in any order", func(c *Config) { c.Unordered, c.Extends = true, false }),
		restarted.but("leases, asked again, not extended", func(c *Config) { c.AsksOn, c.Extends = -1, false }),
		known.but("tokens, clocks known", func(*Config) {}),
		tokens.but("tokens", func(c *Config) { c.NoStrays = false }),
		tokens.but("tokens, extended", func(c *Config) { c.Extends = true }),
		extremes.but("tokens, wide skew", func(c *Config) { c.Skew, c.Gate = 2, 7 }),
		tokens.but("tokens, longer leases", func(c *Config) { c.Validity, c.Gate = 3, 4 }),
		steady.but("tokens, three at a time", func(c *Config) { c.Attempts, c.Starts = 3, 3 }),
		steady.but("tokens, three in turn", func(c *Config) { c.Starts = 3 }),
		tokens.but("tokens, two restarts", func(c *Config) { c.Restarts = 2 }),
		tokens.but("tokens, five nodes", func(c *Config) { c.Nodes, c.Clocks = 5, [2]int8{1, 1} }),
		steady.but("tokens, asked once more", func(c *Config) { c.AsksOn = 1 }),
		knownSteady.but("tokens, asked again", func(c *Config) { c.AsksOn = -1 }),
		tokens.but("tokens, asked again, a restart", func(c *Config) { c.AsksOn, c.Clocks = 1, [2]int8{1, 1} }),
		steady.but("tokens, two second rounds", func(c *Config) { c.Others, c.Rounds = 1, 2 }),
		extremes.but("tokens, shared counters", func(c *Config) { c.Others, c.Gate = 1, 4 }), // what is counted up needs a longer gate, see perTick
		extremes.but("tokens, shared counters, extended", func(c *Config) { c.Extends, c.Others, c.Restarts = true, 2, 0 }),
		clockless.but("tokens without clocks", func(*Config) {}),
		clockless.but("tokens without clocks, shared counters", func(c *Config) { c.Others = 2 }),
		clockless.but("tokens without clocks, extended", func(c *Config) { c.NoStrays, c.Extends = false, true }),
		clockless.but("tokens without clocks, asked again", func(c *Config) { c.AsksOn, c.Extremes = 2, true }),
	}
}

// Mistakes are the configurations in which a violation must be found.
func Mistakes() []Config {
	calm := leases.but("", func(c *Config) { c.Restarts = 0 }) // for defects that have nothing to do with restarts
	asked := calm.but("", func(c *Config) { c.AsksOn, c.Extends = -1, false })
	return []Config{
		restarted.with(NoGate, MutualExclusion),
		restarted.with(ShortGate, MutualExclusion),
		restarted.with(GrantUnvouched, MutualExclusion),
		restarted.with(BeforeOnly, MutualExclusion),
		restarted.with(RefillUnvouched, MutualExclusion),
		restarted.with(ExtendUnvouched, MutualExclusion),
		calm.with(LateReply, LapsedStaysLapsed),
		calm.with(CountFromReply, MutualExclusion),
		calm.with(ProofFromAnswer, MutualExclusion),
		calm.with(ProofTooFew, MutualExclusion),
		calm.but("", func(c *Config) { c.Losses = 1 }).with(GoneIgnored, MutualExclusion),
		asked.with(CountFromLast, MutualExclusion),
		asked.with(UndoEarlier, MutualExclusion),
		calm.with(NoDrift, MutualExclusion),
		calm.with(NoCompare, MutualExclusion),
		calm.with(ExtendAny, MutualExclusion),
		calm.with(QuorumTooSmall, MutualExclusion),
		calm.with(Overtaking, NothingLeft),
		calm.but("one owner value for two attempts", func(c *Config) { c.SharedOwner, c.Only = true, MutualExclusion }),
		extremes.with(GateWithoutSkew, TokenOrder),
		knownSteady.with(RaiseFirst, TokenOrder),
		clockless.with(NotStrict, TokenOrder),
		knownSteady.with(TokenOnOne, TokenOrder),
		knownSteady.with(Mixed, TokenOrder),
		knownSteady.but("", func(c *Config) { c.AsksOn = 1 }).with(OwnRaises, TokenOrder),
		known.with(RaiseUnvouched, TokenOrder),
		known.with(AgreeUnvouched, TokenOrder),
		knownSteady.with(SecondProves, MutualExclusion),
		known.with(ClocksIgnored, TokenOrder),
		extremes.but("", func(c *Config) { c.Clocks[1] = 3 }).with(OneClock, TokenOrder),
		extremes.with(NotChecked, TokenOrder),
	}
}

// Spares are configurations that lack a rule and in which the protocol holds all the same: in the
// model, another rule covers for the missing one.
func Spares() []Config {
	return []Config{
		extremes.with(SeenIgnored, none),
		leases.but("", func(c *Config) { c.Restarts, c.NoStrays = 0, true }).with(LateReply, MutualExclusion),
	}
}
