package redlock

import (
	"github.com/valkey-io/valkey-go"
)

// packetSize is how many extensions one command carries at most. A server does nothing else meanwhile, for about a tenth of a millisecond.
const packetSize = 128

// packet returns how many of the requests one command carries: one, or several extensions that want the same. Those of a Cluster are on
// servers of their own.
func (n *node) packet(batch []*request) int {
	first := batch[0]
	if !n.watched || !first.isPlain() {
		return 1
	}
	size := 1
	for size < min(len(batch), packetSize) && batch[size].isPlain() && batch[size].args.ttl == first.args.ttl {
		size++
	}
	return size
}

// isPlain reports whether the request is an extension that changes nothing but the expiry.
func (r *request) isPlain() bool {
	return r.op == OpExtend && !r.alone && r.args.spread == "0"
}

// extendMany is the command for several extensions. words is a buffer, which is returned as it is then.
func extendMany(client valkey.Client, packet []*request, full bool, words []string) (valkey.Completed, []string) {
	words = words[:0]
	for _, r := range packet {
		words = append(words, r.attempt.keys.lock)
	}
	words = append(words, packet[0].args.ttl)
	for _, r := range packet {
		words = append(words, r.attempt.owner)
	}
	keys, args := words[:len(packet)], words[len(packet):]
	if full {
		return client.B().Eval().Script(extendManyScript.text).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build(), words
	}
	return client.B().Evalsha().Sha1(extendManyScript.sha).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build(), words
}

// parseMany reads what extendManyScript returns.
func parseMany(result valkey.ValkeyResult, size int) (extended string, err error) {
	msg, err := result.ToMessage()
	if err != nil {
		return "", err
	}
	extended, err = msg.ToString()
	if err != nil || len(extended) != size {
		return "", unexpected(msg)
	}
	return extended, nil
}
