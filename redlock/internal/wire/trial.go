package wire

import "github.com/valkey-io/valkey-go"

// Need is the purpose of a command of a trial.
type Need uint8

// The purposes.
const (
	ForLeases    Need = iota // leases: without it none can be acquired, or none released
	ForRegisters             // registers, which outlive leases
	ForQueues                // handing a key over to the next waiter
	ForReading               // reading who holds a key
	ForBoards                // cards, journals and orders
	ForRosters               // the roster: which processes use the server
	ForLinks                 // commands that the client sends by itself
)

// Trials are the commands of lib/trial.lua, in their order.
var Trials = []struct {
	Command string
	For     Need
}{
	{"TIME", ForLeases}, {"GET", ForLeases}, {"HGET", ForLeases}, {"PTTL", ForLeases}, {"HSET", ForLeases},
	{"SET", ForLeases}, {"PEXPIRE", ForLeases}, {"DEL", ForLeases},
	{"GET", ForRegisters}, {"SET", ForRegisters},
	{"EXISTS", ForRosters}, {"MGET", ForLeases}, {"HMGET", ForLeases},
	{"ZADD", ForQueues}, {"ZRANK", ForQueues}, {"ZSCORE", ForQueues}, {"ZCARD", ForQueues},
	{"ZRANGE", ForQueues}, {"ZREM", ForQueues}, {"PEXPIRE", ForQueues}, {"PUBLISH", ForQueues},
	{"SUBSCRIBE", ForQueues}, {"EVALSHA_RO", ForReading}, {"EVALSHA", ForLeases}, {"EVAL", ForLeases}, {"EVAL_RO", ForReading},
	{"HGETALL", ForRosters}, {"HDEL", ForRosters}, {"ZRANGEBYLEX", ForBoards}, {"LINDEX", ForBoards}, {"LPUSH", ForBoards}, {"LRANGE", ForBoards}, {"LREM", ForBoards},
	{"LSET", ForBoards}, {"LTRIM", ForBoards},
	{"PING", ForLinks}, {"UNSUBSCRIBE", ForLinks}, {"PUNSUBSCRIBE", ForLinks}, {"SUNSUBSCRIBE", ForLinks}, {"DISCARD", ForLinks},
}

// trialIn reads what lib/trial.lua returns.
func trialIn(answers []valkey.ValkeyMessage) []error {
	trial := make([]error, len(answers))
	for i, each := range answers {
		trial[i] = each.Error()
	}
	return trial
}
