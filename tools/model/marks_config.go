package model

// MarkConfig is a configuration of the model of marks: operations that pause a job and resume it,
// by what they write to nodes that forget it, and restore it from each other; and an attempt to be
// granted a number of the job.
//
// A mark is a floor: a node that knows marks grants no number that was due before it. There are two
// numbers. The old one is due before the floor that a resume sets, the new one after it; a pause
// sets a floor above both. An operation has a lease, whose fencing token is its version, and which
// may end at any moment. It writes, and counts the nodes that take the write, in its Round and
// while it has its lease. A node takes a write if it knows marks, and the version rises or is the
// one that it has. When enough have, the operation waits, and returns. There is one thing of other
// jobs: a change of their marks writes this job's as well, as it has read it of a quorum of nodes
// that know.
//
// What an operation began to write may arrive at any time later, also when it has failed, and also
// after a restart. So there is no step in which nodes are told what others know: that is a write
// that arrives late. An attempt may be granted the number by a node at any moment until its time is
// over, and counts what it was granted before a node's restart. The leases and records of numbers
// are left out. Restores are as in the model of records, from Q others that know, unless Sources or
// Desperate say otherwise. What a restore writes is merged with what the node has: the later
// version stays.
//
// What is promised, in configurations without a limit:
//
//   - when a pause has returned, no number is granted, until a later resume began to write. The
//     pause waits for as long as an acquisition lasts, from its last acknowledgement on. If it
//     returns at once, an acquisition that had begun before may still be granted its number, for as
//     long as it lasts; those that begin later are not (Later);
//   - what was due before the floor of the resume is not granted after it either;
//   - when a resume has returned, at once, no number that is due after its floor and is asked for
//     from then on is refused by a quorum, until a later pause began to write (Skips).
type MarkConfig struct {
	Name       string
	Nodes      int
	Writes     int // nodes that must take a write; 0 for a quorum
	Sources    int // others that a restore reads; 0 for a quorum, or all of them
	Operations int // in all, one after the other
	Restores   int // at the same time
	Restarts   int // in all, of any nodes; -1 for no limit
	Empties    int // of them, those after which a node may come back empty; -1 for all
	Flushes    int // in all, of nodes that run

	Acquire int // ticks in which an attempt must have its quorum
	Round   int // ticks in which a write must have its own
	Wait    int // ticks from then until the operation returns
	Gate    int // ticks after its restart in which a node does not vote

	New       bool // no node knows marks at the beginning
	Desperate bool // if fewer than Q - 1 know, what any Q nodes have is taken
	OneByOne  bool // a node is restarted only while all others know
	Calm      bool // a node is flushed only while no operation writes and no restore is under way
	Later     bool // asked is only of attempts that began after the operation returned
	Skips     bool // asked is what a quorum refuses, not what it grants

	Defect MarkDefect
}

// MarkDefect is a deliberate mistake in how marks are written, kept and restored.
type MarkDefect uint8

// The defects.
const (
	MarkSound            MarkDefect = iota
	UnknowingGrants                 // a node that does not know marks grants numbers
	OldMarksAreKnown                // what a node comes back with counts as known, whatever process it is of
	ReadInQuarantine                // others are read before the quarantine of the process is over
	ReadBeforeProcess               // others are read before the process that is to know is
	RestoredToAnother               // what was read for one process is written to the next
	RestoredOverKnown               // a restore replaces what a node has, also if it knows meanwhile
	OwnForgotten                    // a restore replaces what a node has that does not know
	UnknowingMarkSources            // nodes that do not know count among those that are read
	LastReadWins                    // a restore takes what it reads last, whatever version that is
	FewerMarkSources                // one node less than Q - 1 is read
	MarkOnOneNode                   // one node less than a quorum is enough for a write
	LowerReplaces                   // a write replaces what a node has, also if that is of a later version
	MarkRoundWithoutEnd             // a write may take longer than the gate keeps a restarted node out
	MarkWithoutGate                 // a restarted node is restored, and votes, at once
	NoOperatorLease                 // operations have no lease: the version is the one that was read, and one more
	LeaseNotChecked                 // an operation goes on after its lease
	FewerLooked                     // an operation reads one node less than a quorum
	UnknowingLooked                 // an operation reads nodes that do not know
	ReturnsAtOnce                   // an operation returns when a quorum has taken what it wrote
	WaitsFromTheStart               // an operation waits from the beginning of its round on
	WaitsTooShort                   // an operation waits for less than an attempt lasts
	NumberComparedAbove             // the number is compared with the floor, and is above what is due
	NumberComparedBelow             // the number is compared with the floor, and is below what is due
	SkippedByOne                    // a number is skipped when one node refuses it
	UnknowingTakes                  // a node that does not know takes what is written, and counts
)

var markDefectNames = [...]string{
	MarkSound:            "none",
	UnknowingGrants:      "a node that does not know marks votes",
	OldMarksAreKnown:     "old marks count as known",
	ReadInQuarantine:     "marks are read before the quarantine is over",
	ReadBeforeProcess:    "marks are read before the run_id is known",
	RestoredToAnother:    "marks are restored to another process",
	RestoredOverKnown:    "restored marks replace what is known",
	OwnForgotten:         "restored marks replace what is not known",
	UnknowingMarkSources: "marks of sources that do not know",
	LastReadWins:         "the last marks that are read win",
	FewerMarkSources:     "marks from fewer than a quorum less one",
	MarkOnOneNode:        "a mark on less than a quorum",
	LowerReplaces:        "a late write replaces a later version",
	MarkRoundWithoutEnd:  "a write that straddles a restart and a restore",
	MarkWithoutGate:      "no gate before marks are restored",
	NoOperatorLease:      "two operators without a lease",
	LeaseNotChecked:      "written after the lease",
	FewerLooked:          "an operator reads less than a quorum",
	UnknowingLooked:      "an operator reads nodes that do not know",
	ReturnsAtOnce:        "a pause returns at once",
	WaitsFromTheStart:    "a pause waits from the start of its round",
	WaitsTooShort:        "a pause waits for less than an acquisition",
	NumberComparedAbove:  "the number is compared, and is above",
	NumberComparedBelow:  "the number is compared, and is below",
	SkippedByOne:         "one refusal skips a number",
	UnknowingTakes:       "a write counts where marks are not known",
}

func (d MarkDefect) String() string { return markDefectNames[d] }

func (c *MarkConfig) quorum() int { return c.Nodes/2 + 1 }

func (c *MarkConfig) writes() int {
	switch {
	case c.Defect == MarkOnOneNode:
		return c.quorum() - 1
	case c.Writes != 0:
		return c.Writes
	}
	return c.quorum()
}

// sources is how many others are read.
func (c *MarkConfig) sources() int {
	switch {
	case c.Defect == FewerMarkSources:
		return c.quorum() - 2
	case c.Sources != 0:
		return c.Sources
	}
	return min(c.quorum(), c.Nodes-1)
}

func (c *MarkConfig) gate() int {
	if c.Defect == MarkWithoutGate {
		return 0
	}
	return c.Gate
}

var markDesign = MarkConfig{
	Nodes: 3, Operations: 2, Restores: 1, Restarts: -1, Empties: -1, Acquire: 1, Round: 1, Wait: 1, Gate: 1,
}

func (c MarkConfig) but(name string, change func(*MarkConfig)) MarkConfig {
	c.Name = name
	change(&c)
	return c
}

// MarkDesigns are the configurations in which what they ask for must hold.
func MarkDesigns() []MarkConfig {
	d := markDesign
	return []MarkConfig{
		d.but("marks", func(*MarkConfig) {}),
		d.but("marks, three operations", func(c *MarkConfig) { c.Operations, c.Restarts = 3, 1 }),
		d.but("marks, two restores at a time", func(c *MarkConfig) { c.Operations, c.Restores, c.Restarts = 1, 2, 3 }),
		d.but("marks, longer times", func(c *MarkConfig) {
			c.Acquire, c.Round, c.Wait, c.Gate, c.Restarts = 2, 2, 2, 2, 1
		}),
		d.but("marks, those that begin later", func(c *MarkConfig) { c.Wait, c.Later, c.Restarts = 0, true, 2 }),
		d.but("marks, resumed", func(c *MarkConfig) { c.resumed() }),
		d.but("marks, emptied one by one", func(c *MarkConfig) { c.Desperate, c.OneByOne = true, true }),
		d.but("marks, a new fleet and power cuts", func(c *MarkConfig) {
			c.powerCuts()
			c.New, c.Restarts = true, 2
		}),
		d.but("marks, on all nodes", func(c *MarkConfig) {
			c.onMore()
			c.Restarts = 2
		}),
		d.but("marks, on all nodes, emptied one by one", func(c *MarkConfig) {
			c.onMore()
			c.Desperate, c.OneByOne = true, true
		}),
		d.but("marks, on all nodes, power cuts and an empty node", func(c *MarkConfig) {
			c.powerCuts()
			c.onMore()
			c.Operations, c.Empties = 1, 1
		}),
		d.but("marks, a node is flushed", func(c *MarkConfig) { c.Operations, c.Restarts, c.Flushes, c.Calm = 1, 1, 2, true }),
		d.but("marks, four nodes", func(c *MarkConfig) { c.Nodes, c.Restarts = 4, 1 }),
		d.but("marks, five nodes", func(c *MarkConfig) { c.Nodes, c.Operations, c.Restarts = 5, 1, 3 }),
		d.but("marks, on four of five nodes", func(c *MarkConfig) {
			c.Nodes, c.Operations, c.Restarts = 5, 1, 3
			c.onMore()
		}),
	}
}

// onMore writes to one node more than a quorum, so that restores read one less.
func (c *MarkConfig) onMore() { c.Writes, c.Sources = c.quorum()+1, c.quorum()-1 }

// resumed asks for what a resume promises, which does not wait.
func (c *MarkConfig) resumed() { c.Skips, c.Wait, c.Later, c.Restarts = true, 0, true, 2 }

// powerCuts has restarted nodes keep their data, and restores take what there is.
func (c *MarkConfig) powerCuts() { c.Empties, c.Desperate, c.Sources = 0, true, c.quorum()-1 }

// MarkMistake is a configuration in which a property must be seen to be violated.
type MarkMistake struct {
	MarkConfig
	Violates Property
}

// MarkMistakes are the configurations with a rule taken away, and those that show what the rules
// cannot do.
func MarkMistakes() []MarkMistake {
	var all []MarkMistake
	add := func(violates Property, name string, change func(*MarkConfig)) {
		all = append(all, MarkMistake{markDesign.but(name, change), violates})
	}
	for d := UnknowingGrants; d <= SkippedByOne; d++ {
		violates := PausedIsNotGranted
		if d >= NumberComparedBelow {
			violates = ResumedIsNotSkipped
		}
		add(violates, d.String(), func(c *MarkConfig) {
			c.Defect, c.Operations = d, 1
			switch d {
			case RestoredOverKnown, RestoredToAnother:
				c.Restores, c.Restarts = 2, 2
			case OwnForgotten:
				c.powerCuts()
			case FewerMarkSources:
				c.Nodes, c.Restarts = 5, 3
				c.onMore()
			case LowerReplaces, NoOperatorLease, LeaseNotChecked, FewerLooked, UnknowingLooked:
				c.Operations, c.Restarts = 2, 1
			case ReturnsAtOnce:
				c.Wait = 0
			case WaitsFromTheStart:
				c.Acquire, c.Round, c.Wait, c.Gate = 2, 2, 2, 2
			case WaitsTooShort:
				c.Acquire = 2
			case NumberComparedBelow, SkippedByOne:
				c.resumed()
				c.Operations = 2
			}
		})
	}
	limit := func(name string, change func(*MarkConfig)) {
		add(PausedIsNotGranted, "limit: "+name, func(c *MarkConfig) {
			c.Operations, c.Restarts = 1, 3
			change(c)
		})
	}
	limit("a mark on a quorum, and one node is dead", func(c *MarkConfig) { c.Sources = c.quorum() - 1 })
	limit("a mark on a quorum, a power cut and an empty node", func(c *MarkConfig) {
		c.Desperate, c.Empties, c.Restarts, c.Restores = true, 1, 2, 2
	})
	limit("a quorum is emptied", func(c *MarkConfig) {
		c.onMore()
		c.Desperate, c.Restarts = true, 2
	})
	limit("a node is flushed in the round", func(c *MarkConfig) { c.Restarts, c.Flushes = 0, 1 })
	return all
}

// MarkSpares are the rules that the model does not need, because others cover for them.
func MarkSpares() []MarkConfig {
	return []MarkConfig{markDesign.but(UnknowingTakes.String(), func(c *MarkConfig) { c.Defect, c.Restarts = UnknowingTakes, 2 })}
}
