package redlock

import (
	"errors"
	"strings"
)

// Rights are the commands that a Quorum and its scripts use, as rules of an ACL with blanks between
// them: what examples/nodes/users.acl grants. The last four are what valkey-go sends on a
// connection before another use of it. A user also needs the keys ~PREFIX:* and the channels
// &PREFIX:*.
const Rights = "+ping +info +time +eval +eval_ro +evalsha +evalsha_ro +get +mget +set +del +exists +pexpire +pttl " +
	"+zadd +zcard +zrange +zrank +zrem +zscore +zrangebylex +hget +hmget +hgetall +hset +hdel " +
	"+lindex +lpush +lrange +lrem +lset +ltrim +publish +subscribe +unsubscribe +punsubscribe +sunsubscribe +discard"

// advice is what to do about a condition.
var advice = map[Condition]string{
	ConditionQuarantined:  "nothing to do: it votes again after that",
	ConditionClockJumped:  "it votes again after that; keep its clock steady (slew, do not step)",
	ConditionReplica:      "name a master that has no replicas: what a replica holds may be overwritten; after REPLICAOF NO ONE this one may be a node itself, once it is restarted",
	ConditionReplicated:   "use masters without replicas, or accept the risk with WithReplicas",
	ConditionDuplicate:    "a server has one vote: list it once",
	ConditionUnsupported:  "use Valkey 7.2 or newer, or Redis 7.0 or newer",
	ConditionLoading:      "wait for it; a server without data to load is ready at once",
	ConditionReadOnly:     "it is a replica or was made one: name the master",
	ConditionOutOfMemory:  "raise maxmemory, or remove data that is another program's; leases that are held are still extended",
	ConditionBusy:         "end the script with SCRIPT KILL; one that has written can only be ended with the server, by SHUTDOWN NOSAVE",
	ConditionNoAuth:       "put user and password into the URL or the client's options",
	ConditionNoPermission: "give the user " + Rights,
	ConditionMoved:        "use independent servers: one of a Cluster may move or lose keys",
	ConditionNotSaving:    "look at its log: its disk is full or not writable (or set stop-writes-on-bgsave-error no)",
	ConditionEvicting:     "set maxmemory-policy noeviction: any other may delete a lease on a full server",
	ConditionMasterless:   "it is a replica: name a master",
	ConditionFewReplicas:  "use masters without replicas, or set min-replicas-to-write 0",
	ConditionTooManyUsers: "raise maxclients or close connections",
	ConditionNoDatabase:   "use a database number below the server's `databases` setting (16 by default), or none, and the same in every process",
	ConditionSentinel:     "name the master itself",
	ConditionProtected:    "set a password or protected-mode no",
	ConditionClockWrong:   "find out which clocks are right, set the others, and let time daemons keep them; leases are safe, and tokens follow the median",
	ConditionDamaged:      "a counter is healed by the next lease on its keys that the others grant, when that is extended; else HDEL the counter, or DEL the lock, that is named on that node",
	ConditionOtherVersion: "use the same version of this library in all processes of the prefix",
	ConditionNoCommand:    "remove the rename-command lines from its configuration: the commands are needed under their names",
	ConditionRestarted:    "it is looked at again by itself",
	ConditionAnotherList: "give all processes the same nodes, and see who has others; a list is changed by ending all processes with the old one first, " +
		"and a node that moves keeps its name: docs/nodes.md",
	ConditionSeveralServers: "name each server by an address of its own, without a balancer in front, and end a server before its successor starts",
	ConditionUnconnected:    "see what has become of its port, its name, its certificate, and what is in between: without the connections that there are it has no vote",
	ConditionBadReply:       "see that its address is a Valkey server's and TLS is as there; if so, look at the proxy in between, or do not trust it: the connection was closed and is made again",
}

// special are causes of a condition for which there is better advice, by a part of their text.
var special = []struct {
	condition Condition
	cause     string
	advice    string
}{
	{ConditionNoAuth, "WRONGPASS", "correct user and password in the URL or the client's options, and see on the server that the user exists and is on (ACL LIST)"},
	{ConditionNoPermission, "'select' command", "leave the database number out of the URL, in every process; or give the user +select"},
	{ConditionNoPermission, "access a key", otherKeys},
	{ConditionNoPermission, "one of the keys", otherKeys}, // Redis 7.0, and in a script
	{ConditionNoPermission, "access a channel", otherChannels},
	{ConditionNoPermission, "one of the channels", otherChannels},
	{ConditionNoPermission, "publish to the channel", otherChannels},
	{ConditionQuarantined, "use a longer TTL", "it votes again after that; if no process of the prefix has such a TTL or skew, delete the key that is named on that node: it is written anew"},
	{ConditionOtherVersion, "keep who uses it", "use the same version of this library in all processes of the prefix"},
	{ConditionDamaged, "leads all clocks", "leave it: tokens rise all the same, and without it they would go back; find out who writes there, or whose clock was ahead, and restart no node without its data until the clocks have come that far"},
	{ConditionDamaged, "the roster is", "find out who writes there, and DEL the key that is named on that node: processes write it again"},
	{ConditionBusy, "FUNCTION KILL", "end the function with FUNCTION KILL; one that has written can only be ended with the server, by SHUTDOWN NOSAVE"},
	{ConditionReplicated, "it was a replica", "restart it now that it has no replicas, or wait for repl-backlog-ttl (an hour by default); or accept the risk with WithReplicas"},
}

const (
	otherKeys     = "give the user the keys of the prefix, ~PREFIX:*; or name the prefix that it has with WithPrefix"
	otherChannels = "give the user the channels of the prefix, &PREFIX:*; or name the prefix that it has with WithPrefix"
)

// adviceFor is what to do about an error's condition. The prefix is that of the Quorum where it is
// known.
func adviceFor(e *ConditionError) string {
	prefix := e.prefix
	if prefix == "" {
		prefix = "prefix"
	}
	cause := e.cause()
	for _, s := range special {
		if s.condition == e.Condition && strings.Contains(cause, s.cause) {
			return strings.ReplaceAll(s.advice, "PREFIX", prefix)
		}
	}
	return advice[e.Condition]
}

// Advice returns what to do about an error or a warning of this package, as its text has it in
// parentheses; empty where nothing is known. It is for people, and may change.
func Advice(err error) string {
	var known *ConditionError
	var suspected *suspicion
	switch {
	case errors.As(err, &known):
		return adviceFor(known)
	case errors.As(err, &suspected):
		return suspected.hint
	}
	return ""
}
