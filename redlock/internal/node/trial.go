package node

import (
	"strings"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// A server is asked for the truth about itself by INFO, and whether leases can be had on it by a
// trial: each command of the other scripts once, on keys of the prefix that are no caller's, and
// in a way that writes nothing. It is a part of each look at a server, so a server that refuses
// what an acquisition needs loses its vote, with the reason, also while nobody acquires.

// suffers is what a server without a command for that lacks; empty where no lease can be had, or
// none let go of.
var suffers = map[wire.Need]string{
	wire.ForLeases: "", wire.ForRegisters: noRegisters, wire.ForQueues: SlowHandovers,
	wire.ForReading: noReading, wire.ForBoards: noBoards, wire.ForRosters: noRosters, wire.ForLinks: noLinks,
}

const (
	noRegisters = "no tick of a job is run, nothing is paused, and no order is taken"
	noReading   = "it tells nobody who holds a key or leads, and no tick of a job is run"
	noBoards    = "what processes tell people (cards, journals, orders) is not kept there, or not read"
	noRosters   = "a process with other nodes may not be noticed there"
	noLinks     = "connections to it cannot be kept, or used again"

	// SlowHandovers is what a server suffers that cannot call those who wait.
	SlowHandovers = "after a release the next waiter is not called, and comes seconds later"
)

// trial is how one went.
type trial struct {
	why   *wire.Fault // why no lease can be had; nil where one can
	lacks *wire.Fault // what suffers else; nil for nothing
}

// trialOf reads what came of each of wire.Trials.
func trialOf(answers []error) *trial {
	t := &trial{}
	var all []string
	for i, err := range answers {
		if err == nil || strings.HasPrefix(err.Error(), "WRONGTYPE") {
			continue // to a key that somebody else has put there it was permitted
		}
		condition, ok := wire.ConditionOf(err.Error())
		if !ok {
			condition = wire.Unsupported
		}
		lost := suffers[wire.Trials[i].For]
		detail := wire.Trials[i].Command + ": " + wire.Short(err.Error())
		switch {
		case lost == "" && t.why == nil:
			t.why = &wire.Fault{Condition: condition, Detail: detail, Err: err}
		case lost == "":
		case t.lacks == nil:
			t.lacks = &wire.Fault{Condition: condition, Err: err}
			all = append(all, lost+": "+detail)
		case !strings.Contains(strings.Join(all, "; "), lost):
			all = append(all, lost+": "+detail)
		}
	}
	if t.lacks != nil {
		t.lacks.Detail = strings.Join(all, "; ")
	}
	return t
}
