package redlock

import (
	"errors"
	"strings"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Rights are the commands that a Quorum and its scripts use, as ACL rules with blanks between them.
// examples/nodes/users.acl grants the same. A user also needs the keys ~PREFIX:* and the channels
// &PREFIX:*.
const Rights = "+ping +info +time +eval +eval_ro +evalsha +evalsha_ro +get +mget +set +del +exists +pexpire +pttl " +
	"+zadd +zcard +zrange +zrank +zrem +zscore +zrangebylex +hget +hgetall +hset +hdel " +
	"+lindex +lpush +lrange +lrem +lset +ltrim +publish +subscribe"

// advice has what to do about each condition.
var advice = map[wire.Condition]string{
	wire.Quarantined:  "nothing to do: it votes again after that",
	wire.ClockJumped:  "it votes again after that; keep its clock steady (slew, do not step)",
	wire.Replica:      "name a master that has no replicas: what a replica holds may be overwritten; after REPLICAOF NO ONE this one may be a node itself, once it is restarted",
	wire.Replicated:   "use masters without replicas, or accept the risk with WithReplicas",
	wire.Duplicate:    "a server has one vote: list it once",
	wire.Unsupported:  "use Valkey 7.2 or newer, or Redis 7.0 or newer",
	wire.Loading:      "wait for it; a server without data to load is ready at once",
	wire.ReadOnly:     "it is a replica or was made one: name the master",
	wire.OutOfMemory:  "raise maxmemory, or remove data that is another program's; leases that are held are still extended",
	wire.Busy:         "end the script with SCRIPT KILL; one that has written can only be ended with the server, by SHUTDOWN NOSAVE",
	wire.NoAuth:       "put user and password into the URL or the client's options",
	wire.NoPermission: "give the user " + Rights,
	wire.Moved:        "use independent servers: one of a Cluster may move or lose keys",
	wire.NotSaving:    "look at its log: its disk is full or not writable (or set stop-writes-on-bgsave-error no)",
	wire.Evicting:     "set maxmemory-policy noeviction: any other may delete a lease on a full server",
	wire.Masterless:   "it is a replica: name a master",
	wire.FewReplicas:  "use masters without replicas, or set min-replicas-to-write 0",
	wire.TooManyUsers: "raise maxclients or close connections",
	wire.NoDatabase:   "use a database number below the server's `databases` setting (16 by default), or none, and the same in every process",
	wire.Sentinel:     "name the master itself",
	wire.Protected:    "set a password or protected-mode no",
	wire.ClockWrong:   "find out which clocks are right, set the others, and let time daemons keep them; leases are safe, and tokens follow the median",
	wire.Damaged:      "find out who writes there; then ZREM the counter that is named on that node, or DEL the key if it is a lock or of another type",
	wire.OtherVersion: "use the same version of this library in all processes of the prefix",
	wire.NoCommand:    "remove the rename-command lines from its configuration: the commands are needed under their names",
	wire.Restarted:    "it is looked at again by itself",
	wire.AnotherList: "give all processes the same nodes, and see who has others; a list is changed by ending all processes with the old one first, " +
		"and a node that moves keeps its name: docs/nodes.md",
	wire.SeveralServers: "name each server by an address of its own, without a balancer in front, and end a server before its successor starts",
	wire.Unconnected:    "see what has become of its port, its name, its certificate, and what is in between: without the connections that there are it has no vote",
	wire.BadReply:       "see that its address is a Valkey server's and TLS is as there; if so, look at the proxy in between, or do not trust it: the connection was closed and is made again",
}

// special has better advice for some causes of a condition. A cause is known by a part of its text.
var special = []struct {
	condition wire.Condition
	cause     string
	advice    string
}{
	{wire.NoAuth, "WRONGPASS", "correct user and password in the URL or the client's options, and see on the server that the user exists and is on (ACL LIST)"},
	{wire.NoPermission, "'select' command", "leave the database number out of the URL, in every process; or give the user +select"},
	{wire.NoPermission, "access a key", otherKeys},
	{wire.NoPermission, "one of the keys", otherKeys}, // Redis 7.0, and in a script
	{wire.NoPermission, "access a channel", otherChannels},
	{wire.NoPermission, "one of the channels", otherChannels},
	{wire.NoPermission, "publish to the channel", otherChannels},
	{wire.Quarantined, "use a longer TTL", "it votes again after that; if no process of the prefix has such a TTL or skew, delete the key that is named on every node, where it is written anew, and then restart processes that still say this"},
	{wire.OtherVersion, "keep who uses it", "use the same version of this library in all processes of the prefix"},
	{wire.Damaged, "leads all clocks", "leave it: tokens rise all the same, and without it they would go back; find out who writes there, or whose clock was ahead, and restart no node without its data until the clocks have come that far"},
	{wire.Damaged, "the roster is", "find out who writes there, and DEL the key that is named on that node: processes write it again"},
	{wire.NotSaving, "AOF", "look at its log: its disk is full or not writable"},
	{wire.Busy, "FUNCTION KILL", "end the function with FUNCTION KILL; one that has written can only be ended with the server, by SHUTDOWN NOSAVE"},
	{wire.Replicated, "it was a replica", "restart it now that it has no replicas, or wait for repl-backlog-ttl (an hour by default); or accept the risk with WithReplicas"},
}

const (
	otherKeys     = "give the user the keys of the prefix, ~PREFIX:*; or name the prefix that it has with WithPrefix"
	otherChannels = "give the user the channels of the prefix, &PREFIX:*; or name the prefix that it has with WithPrefix"
)

// adviceFor returns what to do about an error's condition. The advice names the Quorum's prefix
// where that is known.
func adviceFor(e *ConditionError) string {
	prefix := e.prefix
	if prefix == "" {
		prefix = "prefix"
	}
	cause := e.cause()
	for _, s := range special {
		if s.condition == wire.Condition(e.Condition) && strings.Contains(cause, s.cause) {
			return strings.ReplaceAll(s.advice, "PREFIX", prefix)
		}
	}
	return advice[wire.Condition(e.Condition)]
}

// Advice returns what to do about an error or a warning of this package; empty where nothing is
// known. The error's text has the same advice in parentheses. It is for people, and may change.
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
