package checker

import (
	"slices"

	"github.com/anishathalye/porcupine"
)

// operation is a step of a leased, fenced mutex: a lease is acquired, or it is over.
type operation struct {
	key     string
	lease   string
	token   uint64
	acquire bool
	free    bool // the token's order is excused
}

// mutex is the state of a key.
type mutex struct {
	holder string
	token  uint64 // the largest so far
}

// model is a mutex for each key. It can be acquired when it is free, with a token larger than all
// before, and is free again when its lease is over. A lease is over at the one instant that was
// found for it, whether it was released or not.
var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := make(map[string][]porcupine.Operation)
		var keys []string
		for _, o := range history {
			key := o.Input.(operation).key
			if byKey[key] == nil {
				keys = append(keys, key)
			}
			byKey[key] = append(byKey[key], o)
		}
		parts := make([][]porcupine.Operation, len(keys))
		for i, key := range keys {
			parts[i] = byKey[key]
		}
		return parts
	},
	Init: func() any { return mutex{} },
	Step: func(state, input, _ any) (bool, any) {
		m, o := state.(mutex), input.(operation)
		switch {
		case !o.acquire:
			return m.holder == o.lease, mutex{token: m.token}
		case m.holder != "" || o.token <= m.token && !o.free:
			return false, m
		default:
			return true, mutex{holder: o.lease, token: max(m.token, o.token)}
		}
	},
}

// linearize asks porcupine whether the leases are those of a mutex. What an excused overlap took
// away is over when the round began that took it.
func (x *holds) linearize() (result porcupine.CheckResult, operations int) {
	var history []porcupine.Operation
	clients := make(map[string]int)
	for _, l := range x.all {
		if _, known := clients[l.life]; !known {
			clients[l.life] = len(clients)
		}
		client := clients[l.life]
		end := max(l.end, l.begun())
		over := end
		if l.cut != 0 {
			over = min(end, max(l.cut, l.begun()))
		}
		history = append(history, porcupine.Operation{
			ClientId: client, Input: operation{key: l.key, lease: l.id, token: l.token, acquire: true, free: l.free},
			Call: int64(l.begun()), Return: int64(l.granted),
		}, porcupine.Operation{
			ClientId: client, Input: operation{key: l.key, lease: l.id},
			Call: int64(over), Return: int64(end),
		})
	}
	return porcupine.CheckOperationsTimeout(model, slices.Clip(history), x.History.Undecided), len(history)
}
