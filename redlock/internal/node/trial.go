package node

import (
	"cmp"
	"strings"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// INFO tells what a server is. A trial tells whether leases can be acquired on it. For each command
// of the other scripts it calls the command once, on keys of the prefix that belong to no caller
// and in a way that writes nothing, or it asks whether the user may call it. Each look at a server
// has a trial. So a server that refuses what an acquisition needs loses its vote, with the reason,
// even while nothing is acquired.

// trial is the outcome of a trial.
type trial struct {
	why   *wire.Fault // why no lease can be acquired; nil if leases can
	lacks *wire.Fault // what else fails; nil for nothing
}

// trialOf reads the errors of wire.Trials.
func trialOf(answers []error) *trial {
	t := &trial{}
	for i, err := range answers {
		if err == nil || strings.HasPrefix(err.Error(), "WRONGTYPE") {
			continue // the command was permitted, and met a key of another program
		}
		condition, ok := wire.ConditionOf(err.Error())
		if !ok {
			condition = wire.Unsupported
		}
		lost, detail := wire.Trials[i].Lost, wire.Trials[i].Command+": "+wire.Short(err.Error())
		switch {
		case lost == "":
			t.why = cmp.Or(t.why, &wire.Fault{Condition: condition, Detail: detail, Err: err})
		case t.lacks == nil:
			t.lacks = &wire.Fault{Condition: condition, Detail: lost + ": " + detail, Err: err}
		case !strings.Contains(t.lacks.Detail, lost):
			t.lacks.Detail += "; " + lost + ": " + detail
		}
	}
	return t
}
