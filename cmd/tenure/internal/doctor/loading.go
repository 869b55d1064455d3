package doctor

import (
	"context"
	"strings"

	"github.com/valkey-io/valkey-go"
)

// While a server loads its append-only file, it checks the transactions in the file against the
// rights of the default user. The writes of a script are in the file as a transaction. If the
// default user may not execute one, the server drops it and starts all the same:
// https://github.com/valkey-io/valkey/issues/3983, https://github.com/redis/redis/issues/14541.

// loaded lists commands that occur in such transactions. @key stands for a name of the prefix.
var loaded = []string{
	"SELECT 0", "SET @key x", "DEL @key", "UNLINK @key", "PEXPIREAT @key 1", "HSET @key f v", "HDEL @key f", "ZADD @key 1 x", "ZREM @key x",
	"LPUSH @key x", "LREM @key 0 x", "LSET @key 0 x", "LTRIM @key 0 0",
}

// loading says whether a server would drop writes because of the rights of its default user.
type loading struct {
	refusal string // the server's answer for the first command that the default user may not execute; empty for none
	err     error  // why it is not known
}

// askLoading asks a server with an append-only file whether its default user may execute all loaded
// commands.
func askLoading(ctx context.Context, client valkey.Client, prefix string) (l loading) {
	names := strings.NewReplacer("@key", prefix+":{tenure-doctor}")
	for _, command := range loaded {
		ask := client.B().Arbitrary("ACL", "DRYRUN", "default").Args(strings.Fields(names.Replace(command))...).Build()
		said, err := client.Do(ctx, ask).ToString()
		if err != nil {
			return loading{err: err}
		}
		if said != "OK" {
			return loading{refusal: said}
		}
	}
	return loading{}
}

// loadings reports servers that have dropped writes when they loaded their files, and servers that
// would drop writes.
func (e *examination) loadings() {
	const mend = "on every node have `user default off ~* &* +@all` in the file of the users, and ACL LOAD it, before any is started again"
	for _, s := range e.servers {
		if s.info["aof_enabled"] != "1" {
			continue
		}
		alone := s.info["role"] == "master" && s.number("connected_slaves") == 0 // replication has such errors too
		if s.number("unexpected_error_replies") > 0 && alone {
			const seen = "it has dropped writes while it loaded its append-only file: it may have forgotten ticks that were run, pauses and orders"
			advice := "see the lines with CRITICAL in its log"
			if s.info["errorstat_NOPERM"] != "" {
				advice = mend + "; then restart this one: its file still has the writes, unless it was rewritten since (docs/operations.md, A node dropped writes)"
			}
			e.found.add(s.finding(Fault, "writes_dropped", seen, advice))
		}
		switch l := s.loading; {
		case l.refusal != "":
			e.found.add(s.finding(Warning, "default_user", "started again, it would drop what scripts have written to its append-only file: "+l.refusal,
				mend))
		case l.err != nil && refused(l.err):
			e.found.add(s.finding(Note, "default_user", "the user lacks +acl|dryrun: whether the server would drop writes when it loads its append-only file is not known",
				"run tenure doctor as the operator of docs/nodes.md, or ACL SETUSER "+s.userName()+" +acl|dryrun"))
		case l.err != nil:
			e.found.add(s.finding(Note, "default_user", "whether the server would drop writes when it loads its append-only file is not known: "+l.err.Error(),
				"run tenure doctor again; if it stays, look at the default user on the server: docs/nodes.md"))
		}
	}
}
