package model

// RegisterConfig is a configuration of the model of the register.
type RegisterConfig struct {
	Name     string
	Nodes    int
	Holders  int
	Twins    bool // the first two holders have one ballot
	New      bool // no node knows the register yet
	Plain    bool // there is a plain read
	Repeats  bool // a write may be repeated
	Once     bool // holders write once only
	Round    int  // ticks after which a round is over
	Gate     int  // ticks after its restart for which a node does not vote
	Restores bool // keepers restore nodes, one at a time
	Restarts int

	Defect Defect
}

// registerDefects are all defects of the model of the register: rules that are broken.
var registerDefects defects

var (
	RegNoPromise         = registerDefects.add("a read promises nothing")
	RegFewRead           = registerDefects.add("a read of Q - 1")
	RegFewWritten        = registerDefects.add("a write to Q - 1")
	RegWrittenUnread     = registerDefects.add("a write before the read")
	RegLowerTaken        = registerDefects.add("a lower ballot is taken")
	RegLowerRead         = registerDefects.add("a lower ballot's value is read")
	RegNotStrict         = registerDefects.add("a promise is not strict")
	RegUnknowingReads    = registerDefects.add("a node that does not know is read")
	RegUnknowingTakes    = registerDefects.add("any write makes a node know")
	RegNewAtOnce         = registerDefects.add("a new register is written at once")
	RegFewSources        = registerDefects.add("a register is restored from Q - 1")
	RegUnknowingSources  = registerDefects.add("it is restored from nodes that do not know")
	RegOtherProcess      = registerDefects.add("it is restored to another process")
	RegOverKnown         = registerDefects.add("it is restored over what is known")
	RegNoPromiseRestored = registerDefects.add("it is restored without the promise")
	RegLastSource        = registerDefects.add("it is restored with the value that was read last")
	RegNoQuarantine      = registerDefects.add("no quarantine")
	RegShortQuarantine   = registerDefects.add("a quarantine of one R")
	RegOldIsKnown        = registerDefects.add("what a restarted node has is known")
	RegSecondAnyBallot   = registerDefects.add("a second write is taken below the promise")
	RegFirstAnyStep      = registerDefects.add("a first write is taken after the second")
	RegFewPlain          = registerDefects.add("a plain read of Q - 1")
)

func (c *RegisterConfig) quorum() int { return c.Nodes/2 + 1 }

// needs returns a quorum, less one for a defect.
func (c *RegisterConfig) needs(d Defect) int {
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

// RegisterDesigns are the configurations in which the register must hold its property.
func RegisterDesigns() []RegisterConfig {
	base := RegisterConfig{Nodes: 3, Holders: 2, Round: 1, Gate: 1}
	but := func(name string, change func(*RegisterConfig)) RegisterConfig {
		c := base
		c.Name = name
		change(&c)
		return c
	}
	return []RegisterConfig{
		but("register", func(c *RegisterConfig) { c.Restarts, c.Restores = 1, true }),
		but("register, three holders", func(c *RegisterConfig) { c.Holders, c.Once = 3, true }),
		but("register, one token twice", func(c *RegisterConfig) { c.Once, c.Twins, c.Restarts, c.Restores = true, true, 1, true }),
		but("register, new", func(c *RegisterConfig) { c.New = true }),
		but("register, two restarts", func(c *RegisterConfig) { c.Once, c.Restarts, c.Restores = true, 2, true }),
		but("register, writes repeated", func(c *RegisterConfig) { c.Repeats = true }),
		but("register, longer times", func(c *RegisterConfig) { c.Once, c.Round, c.Gate, c.Restarts, c.Restores = true, 2, 3, 1, true }),
		but("register, read plainly", func(c *RegisterConfig) { c.Plain, c.Holders, c.Restarts, c.Restores = true, 1, 2, true }),
	}
}

// RegisterMistakes are the configurations in which a violation must be found.
func RegisterMistakes() []RegisterConfig {
	var all []RegisterConfig
	for _, d := range registerDefects {
		c := RegisterConfig{Name: string(d), Nodes: 3, Holders: 2, Round: 1, Gate: 1, Restarts: 1, Restores: true, Defect: d}
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

const regHolders = 3
