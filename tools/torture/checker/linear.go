package checker

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// operation is a step of a leased, fenced mutex: a lease is acquired, or it is over.
type operation struct {
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

// model is the mutex of a key. It can be acquired when it is free, with a token larger than all
// before, and is free again when its lease is over. A lease is over at the one instant that was
// found for it, whether it was released or not.
var model = porcupine.Model{
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

// linearize asks porcupine whether the leases of a key are those of a mutex. What an excused
// overlap took away is over when the round began that took it.
func (x *holds) linearize(key string, leases []*lease) {
	var history []porcupine.Operation
	clients := make(map[string]int)
	for _, l := range leases {
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
			ClientId: client, Input: operation{lease: l.id, token: l.token, acquire: true, free: l.free},
			Call: int64(l.begun()), Return: int64(l.granted),
		}, porcupine.Operation{
			ClientId: client, Input: operation{lease: l.id},
			Call: int64(over), Return: int64(end),
		})
	}
	x.Counts["operations that porcupine ordered"] += len(history)
	switch porcupine.CheckOperationsTimeout(model, history, x.History.Undecided) {
	case porcupine.Illegal:
		at, why := x.History.Over, ""
		if l, before := disorder(leases); l != nil {
			at, why = l.granted, fmt.Sprintf(": %s came after %s", l, before)
		}
		x.add(Unlinear, at, "key %s: no order of the %d grants and ends is that of a leased, fenced mutex%s", key, len(history), why)
	case porcupine.Unknown:
		x.add(Undecided, x.History.Over, "key %s: porcupine did not decide about %d operations within %s", key, len(history), x.History.Undecided)
	}
}

// disorder finds the first lease whose token is not larger than that of one that had returned when
// its round began.
func disorder(leases []*lease) (l, before *lease) {
	for i, l := range leases {
		for _, before := range leases[:i] {
			if before.granted < l.begun() && before.token >= l.token {
				return l, before
			}
		}
	}
	return nil, nil
}
