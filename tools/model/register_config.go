package model

// RegisterConfig is a configuration of it.
type RegisterConfig struct {
	Name     string
	Nodes    int
	Holders  int
	Twins    bool // the first two holders have one ballot
	New      bool // no node knows the register yet
	Plain    bool // somebody reads it plainly
	Repeats  bool // a write may be repeated
	Once     bool // holders write once only
	Round    int  // ticks in which a round is over
	Gate     int  // ticks after its restart in which a node does not vote
	Restores int  // at the same time, of keepers
	Restarts int

	Defect RegisterDefect
}

// RegisterDefect is a rule that is broken.
type RegisterDefect uint8

// The defects.
const (
	RegisterSound        RegisterDefect = iota
	RegNoPromise                        // a read promises nothing
	RegFewRead                          // Q - 1 nodes are read
	RegFewWritten                       // Q - 1 nodes take a write
	RegWrittenUnread                    // it is written before it is read
	RegLowerTaken                       // a node takes a write below its promise
	RegLowerRead                        // the value of the last answer is read
	RegNotStrict                        // a ballot is promised twice
	RegUnknowingReads                   // a node that does not know answers a read
	RegUnknowingTakes                   // any write makes a node know
	RegNewAtOnce                        // a new register is written before it is read
	RegFewSources                       // a keeper reads Q - 1 others
	RegUnknowingSources                 // a keeper reads nodes that do not know
	RegOtherProcess                     // a restoration is written to another process
	RegOverKnown                        // a restoration replaces what is known
	RegNoPromiseRestored                // a restoration has no promise
	RegLastSource                       // a keeper takes the value that it read last
	RegNoQuarantine                     // a restarted node votes at once
	RegShortQuarantine                  // a restarted node votes after one R
	RegOldIsKnown                       // a restarted node knows what it has
	RegSecondAnyBallot                  // the second write is taken below the promise
	RegFirstAnyStep                     // the first write is taken after the second
	RegFewPlain                         // Q - 1 nodes are read plainly
	registerDefects
)

var registerDefectNames = [...]string{
	"none", "a read promises nothing", "a read of Q - 1", "a write to Q - 1", "a write before the read",
	"a lower ballot is taken", "a lower ballot's value is read", "a promise is not strict", "a node that does not know is read",
	"any write makes a node know", "a new register is written at once", "a register is restored from Q - 1",
	"it is restored from nodes that do not know", "it is restored to another process", "it is restored over what is known",
	"it is restored without the promise", "it is restored with the value that was read last", "no quarantine", "a quarantine of one R",
	"what a restarted node has is known", "a second write is taken below the promise", "a first write is taken after the second", "a plain read of Q - 1",
}

func (d RegisterDefect) String() string { return registerDefectNames[d] }

func (c *RegisterConfig) quorum() int { return c.Nodes/2 + 1 }

// needs is a quorum, less one for a defect.
func (c *RegisterConfig) needs(d RegisterDefect) int {
	if c.Defect == d {
		return c.quorum() - 1
	}
	return c.quorum()
}

func (c *RegisterConfig) ballot(holder int) uint8 {
	if c.Twins && holder == 1 {
		return 1
	}
	return uint8(holder + 1)
}

// RegisterDesigns are the configurations in which the register has to be right.
func RegisterDesigns() []RegisterConfig {
	base := RegisterConfig{Nodes: 3, Holders: 2, Round: 1, Gate: 1}
	but := func(name string, change func(*RegisterConfig)) RegisterConfig {
		c := base
		c.Name = name
		change(&c)
		return c
	}
	return []RegisterConfig{
		but("register", func(c *RegisterConfig) { c.Restarts, c.Restores = 1, 1 }),
		but("register, three holders", func(c *RegisterConfig) { c.Holders, c.Once = 3, true }),
		but("register, one token twice", func(c *RegisterConfig) { c.Once, c.Twins, c.Restarts, c.Restores = true, true, 1, 1 }),
		but("register, new", func(c *RegisterConfig) { c.New = true }),
		but("register, two restarts", func(c *RegisterConfig) { c.Once, c.Restarts, c.Restores = true, 2, 1 }),
		but("register, writes repeated", func(c *RegisterConfig) { c.Repeats = true }),
		but("register, longer times", func(c *RegisterConfig) { c.Once, c.Round, c.Gate, c.Restarts, c.Restores = true, 2, 3, 1, 1 }),
		but("register, read plainly", func(c *RegisterConfig) { c.Plain, c.Holders, c.Restarts, c.Restores = true, 1, 2, 1 }),
	}
}

// RegisterMistakes are those in which it must be seen to be wrong.
func RegisterMistakes() []RegisterConfig {
	var all []RegisterConfig
	for d := RegNoPromise; d < registerDefects; d++ {
		c := RegisterConfig{Name: d.String(), Nodes: 3, Holders: 2, Round: 1, Gate: 1, Restarts: 1, Restores: 1, Defect: d}
		switch d {
		case RegNotStrict:
			c.Twins = true
		case RegUnknowingTakes:
			c.Repeats = true
		case RegNewAtOnce:
			c.New, c.Restarts = true, 0
		case RegNoQuarantine:
			c.Gate = 0
		case RegShortQuarantine:
			c.Round, c.Gate = 2, 2
		case RegOtherProcess, RegUnknowingSources:
			c.Once, c.Restarts = true, 2
		case RegOverKnown, RegNoPromiseRestored:
			c.Once, c.Repeats = true, true
		case RegFewPlain:
			c.Plain = true
		}
		all = append(all, c)
	}
	return all
}

const (
	regHolders  = 3
	regRestores = 2
)
