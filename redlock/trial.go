package redlock

import (
	"strings"

	"github.com/valkey-io/valkey-go"
)

// A server is asked for the truth about itself by INFO, and whether leases can be had on it by a
// trial: each command of the other scripts once, on keys of the prefix that are no caller's, and
// in a way that writes nothing. It is a part of each look at a server, so a server that refuses
// what an acquisition needs loses its vote, with the reason, also while nobody acquires.

// opTrial is the trial of a server.
const opTrial Op = "trial"

// trialScript tries what the library needs. A SET with XX, and what changes keys that are not
// there, change nothing, and are refused where a grant would be: for want of rights, of memory or
// of replicas, or because the server cannot save.
//
// KEYS lock, fence, wait; ARGV channel, record. Returns the error of each command of trials, or 1.
var trialScript = newScript(`
local function try(...)
  local answer = redis.pcall(...)
  return type(answer) == 'table' and answer['err'] and answer or 1
end
local lock, fence, wait, record = KEYS[1], KEYS[2], KEYS[3], ARGV[2]
return {
  try('TIME'), try('GET', lock), try('GET', fence), try('PTTL', lock), try('SET', fence, '0', 'XX', 'PX', 1),
  try('SET', lock, '', 'XX', 'PX', 1), try('PEXPIRE', lock, 1), try('DEL', lock),
  try('GET', record), try('SET', record, '', 'XX', 'PX', 1),
  try('EXISTS', wait), try('MGET', lock, fence),
  try('ZADD', wait, 'XX', 1, 'x'), try('ZRANK', wait, 'x'), try('ZSCORE', wait, 'x'), try('ZCARD', wait),
  try('ZRANGE', wait, 0, 0), try('ZREM', wait, 'x'), try('PEXPIRE', wait, 1), try('PUBLISH', ARGV[1], ''),
}
`)

// trials are the commands of trialScript, and what suffers without each.
var trials = []struct {
	command string
	suffers string // empty where no lease can be had, or none let go of
}{
	{"TIME", ""}, {"GET", ""}, {"GET", ""}, {"PTTL", ""}, {"SET", ""},
	{"SET", ""}, {"PEXPIRE", ""}, {"DEL", ""},
	{"GET", noSequences}, {"SET", noSequences},
	{"EXISTS", noBatches}, {"MGET", noBatches},
	{"ZADD", slowHandOvers}, {"ZRANK", slowHandOvers}, {"ZSCORE", slowHandOvers}, {"ZCARD", slowHandOvers},
	{"ZRANGE", slowHandOvers}, {"ZREM", slowHandOvers}, {"PEXPIRE", slowHandOvers}, {"PUBLISH", slowHandOvers},
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

// parseTrial reads what trialScript returns.
func parseTrial(msg valkey.ValkeyMessage) (reply, error) {
	parts, err := msg.ToArray()
	if err != nil || len(parts) != len(trials) {
		return reply{}, unexpected(msg)
	}
	t := &trial{}
	var suffers []string
	for i, part := range parts {
		err := part.Error()
		if err == nil || strings.HasPrefix(err.Error(), "WRONGTYPE") {
			continue // to a key that somebody else has put there it was permitted
		}
		condition, ok := conditionOf(err.Error())
		if !ok {
			condition = ConditionUnsupported
		}
		detail := trials[i].command + ": " + short(err.Error())
		switch {
		case trials[i].suffers == "" && t.why == nil:
			t.why = &ConditionError{Condition: condition, Detail: detail, Err: err}
		case trials[i].suffers == "":
		case t.lacks == nil:
			t.lacks = &ConditionError{Condition: condition, Err: err}
			suffers = append(suffers, trials[i].suffers+": "+detail)
		case !strings.Contains(strings.Join(suffers, "; "), trials[i].suffers):
			suffers = append(suffers, trials[i].suffers+": "+detail)
		}
	}
	if t.lacks != nil {
		t.lacks.Detail = strings.Join(suffers, "; ")
	}
	return reply{verdict: agreed, trial: t}, nil
}

// newTrial makes the attempt of trials. No caller has an empty key.
func (q *Quorum) newTrial() *attempt {
	lock := q.cfg.prefix + ":{}"
	return &attempt{keys: &keyset{lock: lock, fence: lock + ":fence", wait: lock + ":wait"}}
}
