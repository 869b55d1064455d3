package redlock

import (
	"strings"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// A server is asked for the truth about itself by INFO, and whether leases can be had on it by a
// trial: each command of the other scripts once, on keys of the prefix that are no caller's, and
// in a way that writes nothing. It is a part of each look at a server, so a server that refuses
// what an acquisition needs loses its vote, with the reason, also while nobody acquires.

// opTrial is the trial of a server.
const opTrial Op = "trial"

// suffers is what a server without a command for that lacks; empty where no lease can be had, or
// none let go of.
var suffers = map[wire.Need]string{
	wire.ForLeases: "", wire.ForSequences: noSequences, wire.ForGroups: noBatches, wire.ForQueues: slowHandOvers,
}

const (
	noSequences   = "leases of a sequence (WithOnce, jobs) cannot be had"
	noBatches     = "several leases at a time cost a command each"
	slowScripts   = "scripts are sent whole with each command, which takes about three times as long"
	slowHandOvers = "after a release the next waiter is not called, and comes seconds later"
)

// trial is how one went.
type trial struct {
	why   *ConditionError // why no lease can be had; nil where one can
	lacks *ConditionError // what suffers else; nil for nothing
}

// trialOf reads what came of each of wire.Trials.
func trialOf(answers []error) *trial {
	t := &trial{}
	var all []string
	for i, err := range answers {
		if err == nil || strings.HasPrefix(err.Error(), "WRONGTYPE") {
			continue // to a key that somebody else has put there it was permitted
		}
		condition, ok := conditionOf(err.Error())
		if !ok {
			condition = ConditionUnsupported
		}
		lost := suffers[wire.Trials[i].For]
		detail := wire.Trials[i].Command + ": " + short(err.Error())
		switch {
		case lost == "" && t.why == nil:
			t.why = &ConditionError{Condition: condition, Detail: detail, Err: err}
		case lost == "":
		case t.lacks == nil:
			t.lacks = &ConditionError{Condition: condition, Err: err}
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

// probe is a question to a server about itself. No caller has an empty key.
func (q *Quorum) probe(op wire.Op) *wire.Call {
	return &wire.Call{Op: op, Keys: &q.noKey, Channel: q.texts.channel}
}
