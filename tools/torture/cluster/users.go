package cluster

import (
	"fmt"
	"os"
	"path/filepath"
)

// Users are those that docs/nodes.md has: the default user is off, clients are a user who has a
// prefix, and may do no more than they need. The servers check what they read from their
// append-only file against that.
type Users struct {
	Prefix string // of the keys of clients, and their name
	Dir    string // where the servers find the users
}

const (
	password = "password"
	// rights are those of the documented service.
	rights = "-@all +ping +info +time +eval +eval_ro +evalsha +evalsha_ro +get +mget +set +del +exists +pexpire +pttl " +
		"+zadd +zcard +zrange +zrank +zrem +zscore +zrangebylex +hget +hmget +hgetall +hset +hdel +lindex +lpush +lrange +lrem +lset +ltrim " +
		"+publish +subscribe +unsubscribe +punsubscribe +sunsubscribe +discard"
)

// write returns a file of configuration for the servers.
func (u Users) write() (config string, err error) {
	users, config := filepath.Join(u.Dir, "users.acl"), filepath.Join(u.Dir, "valkey.conf")
	text := fmt.Sprintf("user default off ~* &* +@all\nuser operator on >%s ~* &* +@all\nuser %[2]s on >%[1]s resetchannels ~%[2]s:* &%[2]s:* %[3]s\n",
		password, u.Prefix, rights)
	if err = os.WriteFile(users, []byte(text), 0o600); err == nil {
		err = os.WriteFile(config, fmt.Appendf(nil, "aclfile %q\n", users), 0o600)
	}
	return config, err
}
