package redlocktest

import (
	"slices"
	"time"
)

// The methods in this file look at a node's database 0 directly, without a
// connection. They also work while the node is frozen and, on the data that it
// left, while it is killed. They are not counted as commands.

// Keys returns the names of all keys that have not expired, sorted.
func (n *Node) Keys() []string { return n.data().Keys() }

// Get returns the string at key. It reports false if there is none: the key is
// missing, has expired or holds another type.
func (n *Node) Get(key string) (string, bool) {
	value, err := n.data().Get(key)
	return value, err == nil
}

// HGet returns the string in a field of the hash at key. It reports false if
// there is none: the key or the field is missing, or the key has expired or
// holds another type.
func (n *Node) HGet(key, field string) (string, bool) {
	fields, err := n.data().HKeys(key)
	if err != nil || !slices.Contains(fields, field) {
		return "", false
	}
	return n.data().HGet(key, field), true
}

// TTL returns how long key will still live, and zero if it is missing or does
// not expire.
func (n *Node) TTL(key string) time.Duration { return n.data().TTL(key) }

// FlushAll removes every key, as FLUSHALL does: a running node loses its data
// without restarting, which no restart gate can see. Scripts stay cached.
func (n *Node) FlushAll() { n.data().FlushAll() }

// Commands returns how many commands from clients the node has run since it was
// first started, restarts included. It counts a client's handshake (HELLO,
// CLIENT SETINFO) and the commands that fail, but not what a script calls, nor
// what a frozen node has yet to run.
func (n *Node) Commands() int { return int(n.commands.Load()) }
