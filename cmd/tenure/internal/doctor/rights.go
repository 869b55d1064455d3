package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
)

// The effect of a missing right.
const (
	forLeases   = "it can have no lease"
	forWaiters  = "after a release the next waiter is not called, and comes seconds later"
	forRoster   = "a process with other nodes may not be noticed there"
	forTold     = "what processes tell people (cards, journals, orders) is not kept or not read there"
	forReading  = "nobody can ask who holds a key or leads, and jobs cannot be run"
	forTheLink  = "connections cannot be kept or used again"
	forQuarante = "the restart gate cannot look at the server, so it does not vote"
)

// needs has, for each right of redlock.Rights, the effect of its lack and a command that tries it.
// @key and @channel stand for names under the prefix that nothing uses.
//
// No command changes anything: the key does not exist, and no command creates it. LPUSH would
// create it, so a read-only script tries it. The server checks the user's rights before it refuses
// the write.
var needs = []struct {
	right, lost string
	try         string
}{
	{"+ping", forTheLink, "PING"},
	{"+info", forQuarante, "INFO server"},
	{"+time", forQuarante, "TIME"},
	{"+evalsha", forLeases, "EVALSHA " + noScript + " 0"},
	{"+evalsha_ro", forReading, "EVALSHA_RO " + noScript + " 0"},
	{"+eval", forLeases, "EVAL return(1) 0"},
	{"+eval_ro", forReading, "EVAL_RO return(1) 0"},
	{"+get", forLeases, "GET @key"},
	{"+set", forLeases, "SET @key x XX PX 1"},
	{"+del", forLeases, "DEL @key"},
	{"+pexpire", forLeases, "PEXPIRE @key 1"},
	{"+pttl", forLeases, "PTTL @key"},
	{"+zadd", forLeases, "ZADD @key XX 1 x"},
	{"+zscore", forLeases, "ZSCORE @key x"},
	{"+mget", forLeases, "MGET @key"},
	{"+exists", forRoster, "EXISTS @key"},
	{"+zcard", forWaiters, "ZCARD @key"},
	{"+zrange", forWaiters, "ZRANGE @key 0 0"},
	{"+zrank", forWaiters, "ZRANK @key x"},
	{"+zrem", forWaiters, "ZREM @key x"},
	{"+publish", forWaiters, "PUBLISH @channel x"},
	{"+subscribe", forWaiters, "SUBSCRIBE @channel"},
	{"+zrangebylex", forTold, "ZRANGEBYLEX @key - +"},
	{"+hgetall", forRoster, "HGETALL @key"},
	{"+hget", forRoster, "HGET @key f"},
	{"+hset", forRoster, "HSET @key f v f"}, // one value too few: the server checks this last
	{"+hdel", forRoster, "HDEL @key f"},
	{"+lindex", forTold, "LINDEX @key 0"},
	{"+lpush", forTold, "EVAL_RO return(redis.pcall('LPUSH',KEYS[1],'x')) 1 @key"},
	{"+lrange", forTold, "LRANGE @key 0 0"},
	{"+lrem", forTold, "LREM @key 0 x"},
	{"+lset", forTold, "LSET @key 0 x"},
	{"+ltrim", forTold, "LTRIM @key 0 0"},
}

// reader lists the rights of a user who only reads, as in docs/nodes.md.
var reader = strings.Fields("+ping +info +time +eval_ro +evalsha_ro +get +pttl +hgetall +zrangebylex +lrange " +
	"+subscribe")

const noScript = "0000000000000000000000000000000000000000"

// lack is a right that a user does not have, and the effect.
type lack struct{ right, lost string }

// Rights that are not commands.
const (
	theKeys     = "write to the keys"
	theChannels = "use the channels"
)

var marks = map[string]string{theKeys: "~", theChannels: "&"}

// lacking tries each right, on one connection of its own, and returns the missing rights. With an
// error some rights were not tried.
func lacking(ctx context.Context, client valkey.Client, prefix string) (missing []lack, err error) {
	conn, _ := client.Dedicate()
	defer conn.Close()
	conn.SetPubSubHooks(valkey.PubSubHooks{OnMessage: func(valkey.PubSubMessage) {}})
	names := strings.NewReplacer("@key", prefix+":{tenure-doctor}", "@channel", prefix+":doctor")
	for _, n := range needs {
		if n.right == "+lpush" && slices.Contains(missing, lack{"+eval_ro", forReading}) { // the try needs it
			continue
		}
		said := conn.Do(ctx, command(conn, strings.Fields(names.Replace(n.try)))).Error()
		if said != nil && !answered(said) {
			return missing, fmt.Errorf("%s: %w", n.right, said)
		} else if said == nil || !refused(said) {
			continue
		}
		l := lack{n.right, n.lost}
		if isAbout(said, "key") {
			l = lack{theKeys, forLeases}
		} else if isAbout(said, "channel") {
			l = lack{theChannels, forWaiters}
		}
		if !slices.Contains(missing, l) {
			missing = append(missing, l)
		}
	}
	return missing, nil
}

// command makes a command of words. valkey-go needs its own builder for commands with pushed
// answers.
func command(conn valkey.DedicatedClient, words []string) valkey.Completed {
	if words[0] == "SUBSCRIBE" {
		return conn.B().Subscribe().Channel(words[1]).Build()
	}
	return conn.B().Arbitrary(words...).Build()
}

// answered reports whether an error is an answer of the server.
func answered(err error) bool {
	_, said := valkey.IsValkeyErr(err)
	return said || valkey.IsValkeyNil(err)
}

// refused reports whether the server refused a command because the user lacks a right.
func refused(err error) bool {
	text := err.Error()
	return strings.HasPrefix(text, "NOPERM") || strings.Contains(text, "ACL failure") || strings.Contains(text, "The user executing the script")
}

// isAbout reports whether a refusal is about the name of a key, or of a channel, as noun says.
func isAbout(err error, noun string) bool {
	text := err.Error()
	return strings.Contains(text, "access a "+noun) || strings.Contains(text, "one of the "+noun+"s") || strings.Contains(text, "the "+noun+" ")
}

// onlyReads reports whether the user has all rights of a reader, and lacks those for leases.
func onlyReads(missing []lack) bool {
	lacks := func(right string) bool {
		return slices.ContainsFunc(missing, func(l lack) bool { return l.right == right })
	}
	return !slices.ContainsFunc(reader, lacks) && lacks("+evalsha") && lacks("+set") && lacks("+del") && lacks("+hset")
}

// rights adds a finding for each right that a user lacks.
func (e *examination) rights() {
	for _, s := range e.servers {
		if s.untried != nil && len(s.missing) == 0 {
			e.found.add(s.finding(Warning, "rights_unknown", "the rights of the user could not be tried: "+s.untried.Error(),
				"run tenure doctor again; if it stays, see the server's log"))
		}
		if onlyReads(s.missing) {
			e.found.add(s.finding(Note, "reader", "the user may only read: its process has no vote, and gives no orders",
				"nothing, if that is meant; replicas and operators need the rights of docs/nodes.md"))
			s.reads = true
			continue
		}
		for _, m := range s.missing {
			seen, advice := fmt.Sprintf("the user lacks %s: %s", m.right, m.lost), "ACL SETUSER "+s.userName()+" "+m.right
			if mark := marks[m.right]; mark != "" {
				seen = fmt.Sprintf("the user may not %s of the prefix %q: %s", m.right, e.cfg.Prefix, m.lost)
				advice = "ACL SETUSER " + s.userName() + " " + mark + e.cfg.Prefix + ":*, or use the prefix that the user has (--prefix)"
			}
			severity := Warning
			if m.lost == forLeases || m.lost == forQuarante {
				severity = Fault
			}
			e.found.add(s.finding(severity, string(redlock.ConditionNoPermission), seen,
				advice+"; and the same in its file of users, if it has one. All rights: docs/nodes.md"))
		}
	}
}
