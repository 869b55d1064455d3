package model

// Config is a configuration: the sizes, the times in ticks, and what may go wrong.
type Config struct {
	Name     string
	Nodes    int
	Attempts int // at the same time
	Starts   int // attempts in all; 0 for no limit
	Restarts int // restarts in all; -1 for no limit
	Losses   int // how often running nodes lose a key, in all

	Validity int // of a lease, from the start of its round
	Drift    int // how much earlier than the TTL a key may expire; the TTL is Validity + Drift
	Gate     int // how long a restarted node does not vote, by clocks as fast as they may be
	Skew     int // the allowance for wall clocks

	Tokens   bool    // whether there are fencing tokens
	Clocks   [2]int8 // by how many skews a client may know the median of the servers' clocks wrongly, from and to; without clocks: what it takes for that
	Extremes bool    // a proposal is the least or the largest of those that a client may draw
	Extends  bool    // whether leases are extended
	AsksOn   int     // how often an attempt without a quorum may ask a node once more, with the same owner value; -1 for no limit
	Rounds   int     // how many second rounds an attempt may need; 0 for one
	Others   int     // how often a key that shares a node's counter raises it, in all
	NoClocks bool    // nothing bounds time: a key may be gone at any moment, an attempt may take for ever

	NoStrays    bool // the commands that an attempt has in flight are lost when it ends
	Unordered   bool // a node may run an attempt's commands in any order
	SharedOwner bool // two of the attempts have the same owner value

	Defect Defect
	Only   Property // the property to look at, which a defect must be seen to violate; none for all
}

// ttl returns how long a key lives after it was last set.
func (c *Config) ttl() uint8 { return uint8(c.Validity + c.Drift) }

// valid returns how long a lease is relied on.
func (c *Config) valid() uint8 {
	if c.Defect == NoDrift {
		return c.ttl()
	}
	return uint8(c.Validity)
}

// proves reports whether the proofs of nodes matter: leases are extended, and time is bounded.
func (c *Config) proves() bool { return c.Extends && !c.NoClocks }

// quorum returns how many nodes must agree.
func (c *Config) quorum() int {
	if c.Defect == QuorumTooSmall {
		return c.Nodes / 2
	}
	return c.Nodes/2 + 1
}

// gate returns how many ticks after its restart a node votes.
func (c *Config) gate() int {
	switch c.Defect {
	case NoGate:
		return 0
	case ShortGate:
		return c.Validity - 1
	case GateWithoutSkew:
		return c.Validity + c.Drift
	default:
		return c.Gate
	}
}

// owner returns the value that an attempt writes into the key; never 0.
func (c *Config) owner(i int) uint8 {
	if c.SharedOwner && i == 1 {
		return 1
	}
	return uint8(i + 1)
}

func (c Config) but(name string, change func(*Config)) Config {
	c.Name = name
	change(&c)
	return c
}

func (c Config) with(d Defect, only Property) Config {
	c.Name, c.Defect, c.Only = string(d), d, only
	return c
}
