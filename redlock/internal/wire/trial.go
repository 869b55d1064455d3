package wire

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

// Trials are the commands of trial.lua, in their order.
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

func trialKeys(c *Call, to []string) []string {
	return append(to, c.Keys.Lock, c.Keys.Fences, c.Keys.Wait())
}

func trialArgs(c *Call, _ *Target, to []string) []string {
	return append(to, c.Channel, c.Keys.Lock+":register")
}

// trialAnswer reads what trial.lua returns.
func trialAnswer(_ *Call, msg reply) (Answer, error) {
	parts, err := msg.ToArray()
	if err != nil || len(parts) != len(Trials) {
		return Answer{}, msg.unexpected()
	}
	trial := make([]error, len(parts))
	for i, part := range parts {
		trial[i] = part.Error()
	}
	return Answer{Verdict: OK}.With(More{Trial: trial}), nil
}
