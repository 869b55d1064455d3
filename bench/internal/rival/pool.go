package rival

import (
	"context"
	"strconv"
	"time"

	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/valkey-io/valkey-go"
)

// pool is redsync's way to a server, over a valkey-go client. redsync has such a pool only for
// rueidis' look-alike of go-redis, which costs more.
type pool struct{ client valkey.Client }

// Get implements redsync's Pool.
func (p pool) Get(ctx context.Context) (redsyncredis.Conn, error) {
	return conn{nil, p.client, ctx}, nil
}

// conn is a connection in redsync's sense. The client shares its own connections among all of them.
// It has the methods by which redsync locks, extends and unlocks.
type conn struct {
	redsyncredis.Conn // nil
	client            valkey.Client
	ctx               context.Context
}

func (c conn) SetNX(name, value string, expiry time.Duration) (bool, error) {
	err := c.client.Do(c.ctx, c.client.B().Set().Key(name).Value(value).Nx().Px(expiry).Build()).Error()
	return err == nil, notNil(err)
}

// Eval sends the hash first and the text if the server does not know it, as redsync's own pools do.
func (c conn) Eval(script *redsyncredis.Script, keysAndArgs ...any) (any, error) {
	words := make([]string, len(keysAndArgs))
	for i, word := range keysAndArgs {
		switch word := word.(type) {
		case string:
			words[i] = word
		case int:
			words[i] = strconv.Itoa(word)
		}
	}
	keys, args := words[:script.KeyCount], words[script.KeyCount:]
	b := c.client.B()
	reply := c.client.Do(c.ctx, b.Evalsha().Sha1(script.Hash).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
	if e, ok := valkey.IsValkeyErr(reply.Error()); ok && e.IsNoScript() {
		reply = c.client.Do(c.ctx, b.Eval().Script(script.Src).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
	}
	value, err := reply.ToAny()
	return value, notNil(err)
}

// Close implements redsync's Conn. There is nothing to give back.
func (conn) Close() error { return nil }

func notNil(err error) error {
	if valkey.IsValkeyNil(err) {
		return nil
	}
	return err
}
