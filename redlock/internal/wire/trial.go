package wire

import "github.com/valkey-io/valkey-go"

// What fails on a server that lacks a command. Without a command of leases none can be acquired, or
// none released.
const (
	ForLeases    = ""
	ForRegisters = "no tick of a job is run, nothing is paused, and no order is taken"
	ForQueues    = "after a release the next waiter is not called, and comes seconds later"
	ForReading   = "it tells nobody who holds a key or leads, and no tick of a job is run"
	ForBoards    = "what processes tell people (cards, journals, orders) is not kept there, or not read"
	ForRosters   = "a process with other nodes may not be noticed there"
	ForLinks     = "connections to it cannot be kept"
)

// Trials are the commands of lib/trial.lua, in their order.
var Trials = []struct {
	Command string
	Lost    string // what fails without it
}{
	{"TIME", ForLeases}, {"GET", ForLeases}, {"ZSCORE", ForLeases}, {"PTTL", ForLeases}, {"ZADD", ForLeases},
	{"SET", ForLeases}, {"PEXPIRE", ForLeases}, {"DEL", ForLeases},
	{"GET", ForRegisters}, {"SET", ForRegisters},
	{"EXISTS", ForRosters}, {"MGET", ForLeases}, {"ZRANK", ForQueues}, {"ZCARD", ForQueues},
	{"ZRANGE", ForQueues}, {"ZREM", ForQueues}, {"PEXPIRE", ForQueues}, {"PUBLISH", ForQueues},
	{"SUBSCRIBE", ForQueues}, {"EVALSHA_RO", ForReading}, {"EVALSHA", ForLeases}, {"EVAL", ForLeases}, {"EVAL_RO", ForReading},
	{"HGETALL", ForRosters}, {"HGET", ForRosters}, {"HSET", ForRosters}, {"HDEL", ForRosters}, {"ZRANGEBYLEX", ForBoards}, {"LINDEX", ForBoards}, {"LPUSH", ForBoards}, {"LRANGE", ForBoards}, {"LREM", ForBoards},
	{"LSET", ForBoards}, {"LTRIM", ForBoards},
	{"PING", ForLinks},
}

// trialIn reads what lib/trial.lua returns.
func trialIn(answers []valkey.ValkeyMessage) []error {
	trial := make([]error, len(answers))
	for i, each := range answers {
		trial[i] = each.Error()
	}
	return trial
}
