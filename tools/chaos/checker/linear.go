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
func (h *History) linearize(leases []*Lease) (result porcupine.CheckResult, operations int) {
	var history []porcupine.Operation
	clients := make(map[string]int)
	for _, l := range leases {
		if _, known := clients[l.Life]; !known {
			clients[l.Life] = len(clients)
		}
		client := clients[l.Life]
		end := max(l.End, l.begun())
		over := end
		if l.cut != 0 {
			over = min(end, max(l.cut, l.begun()))
		}
		history = append(history, porcupine.Operation{
			ClientId: client, Input: operation{key: l.Key, lease: l.ID, token: l.Token, acquire: true, free: l.free},
			Call: int64(l.begun()), Return: int64(l.Granted),
		}, porcupine.Operation{
			ClientId: client, Input: operation{key: l.Key, lease: l.ID},
			Call: int64(over), Return: int64(end),
		})
	}
	return porcupine.CheckOperationsTimeout(model, slices.Clip(history), h.Settings.Undecided), len(history)
}
