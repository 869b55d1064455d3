package register

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/tenure-dev/tenure/internal/bridge"
	"github.com/tenure-dev/tenure/redlock"
)

// roundLimit is R, the time limit of a round. A round is a read with its restorations, or a write,
// to all nodes. Only an answer that comes within R of the round's beginning counts, by a clock that
// counts a suspend.
//
// A server that was restarted votes after a quarantine of more than 2 R. So a round that counts the
// new process begins after every round that counted the old process is over. By then Q - 1 other
// nodes also have what the old process promised or took in those rounds.
func roundLimit(q bridge.Quorum) time.Duration { return q.TTL() / 2 }

// errUnknowing is the error of a node that has no vote for a register.
type errUnknowing struct{}

func (errUnknowing) Error() string {
	return "the server was restarted or emptied, and does not know the register yet"
}

// ErrorType returns a stable value, see redlock.ErrorType.
func (errUnknowing) ErrorType() string { return "unknown_register" }

var errNoAnswer = errors.New("it answered what no script of this library does")

// reading is a read of registers: one round.
type reading struct {
	q         bridge.Quorum
	registers []Register
	names     []string
	ballot    uint64 // for the first register; 0 for a plain read
	keeps     bool   // for Keep: waits for all nodes, and restores each that does not know a register
	began     time.Duration
	absent    []bool // by node: it did not vote, or had not answered, when the reading began

	views [][]view // of each register, by node
	errs  []error  // by node: the error to report if it says nothing
	times []uint64 // by node: its clock in us; 0 for none
	given []*view  // by register: what it is restored with; nil where enough nodes know it
	only  bool     // restores nothing: the Quorum only looks, or the user may only read on some node

	late func() []*bridge.Answer // the answers of the first round, with those that came since
}

// newReading makes a reading of registers, which must be of one Quorum.
func newReading(registers []Register) (*reading, error) {
	r := &reading{registers: registers, given: make([]*view, len(registers))}
	for _, reg := range registers {
		if reg.q != registers[0].q {
			return nil, &redlock.OptionError{Option: "also", Reason: "is a register of another Quorum"}
		}
		if r.q = bridge.Of(reg.q); r.q == nil {
			return nil, redlock.ErrClosed
		}
		name, err := reg.name(r.q)
		if err != nil {
			return nil, err
		}
		r.names = append(r.names, name)
		r.views = append(r.views, make([]view, r.q.Nodes()))
	}
	r.only = !r.q.TakesPart()
	r.began, r.errs, r.times = r.q.Now(), make([]error, r.q.Nodes()), make([]uint64, r.q.Nodes())
	for node := range r.errs {
		votes, _ := r.q.Vote(node)
		r.absent = append(r.absent, !votes)
	}
	return r, nil
}

// read reads the registers, and restores those that too few nodes know. After nil states has them.
func (r *reading) read(ctx context.Context) error {
	everywhere := func(int) bool { return true }
	if err := r.ask(ctx, len(r.registers), everywhere); err != nil {
		return err
	}
	restored, err := r.restore(ctx)
	if err != nil || r.ballot == 0 || r.given[0] == nil {
		return err
	}
	// The restored nodes have promised nothing yet.
	if err := r.ask(ctx, 1, func(node int) bool { return restored[node] }); err != nil {
		return err
	}
	if r.given[0], err = r.lacking(0); err == nil && r.given[0] != nil {
		err = r.quorumError(0)
	}
	return err
}

// ask asks the nodes that want selects for the first n registers, and waits until enough know them.
func (r *reading) ask(ctx context.Context, n int, want func(node int) bool) error {
	call := &bridge.Call{Script: readScript, Keys: r.names[:n]}
	for i := range n {
		ballot := uint64(0)
		if i == 0 {
			ballot = r.ballot
		}
		call.Args = append(call.Args, decimal(ballot), milliseconds(r.registers[i].keep))
	}
	for node := range r.errs {
		if want(node) {
			for i := range n {
				r.views[i][node] = view{} // drop the old answer: a node promises once, and its last answer counts
			}
		}
	}
	answers, err := r.q.Ask(ctx, &bridge.Question{
		Op: opRead, Key: r.registers[0].key, Reads: r.ballot == 0,
		Call: func(node int) *bridge.Call {
			if want(node) {
				return call
			}
			return nil
		},
		Decided: func(answers []*bridge.Answer) bool {
			now := *r
			now.views, now.errs, now.times = nil, slices.Clone(r.errs), slices.Clone(r.times)
			for i := range r.views {
				now.views = append(now.views, slices.Clone(r.views[i]))
			}
			now.hear(n, answers)
			return !r.keeps && now.isDecided()
		},
	})
	if err != nil {
		return err
	}
	if r.late == nil {
		r.late = answers
	}
	r.hear(n, answers())
	return nil
}

// hear takes the answers of nodes that had not answered before.
func (r *reading) hear(n int, answers []*bridge.Answer) {
	for node, a := range answers {
		if r.views[0][node].says != silent {
			continue
		}
		failed := func(err error) error {
			return &redlock.NodeError{Node: r.q.Address(node), Op: opRead, Err: err}
		}
		switch {
		case a.Texts == nil:
			if a.Err != nil {
				r.errs[node] = a.Err
			}
			continue
		case a.At-r.began > roundLimit(r.q):
			r.errs[node] = failed(redlock.ErrTimeout)
			continue
		case len(a.Texts) != n+2:
			r.errs[node] = failed(errNoAnswer)
			continue
		}
		r.errs[node], r.only = failed(errNoAnswer), r.only || !a.Votes
		r.times[node], _ = strconv.ParseUint(a.Texts[1], 10, 64)
		for i := range n {
			r.views[i][node] = parseView(a.Texts[0], a.Texts[2+i])
		}
	}
}

// isDecided reports whether a quorum knows all registers, or so many nodes refuse the ballot that
// no quorum can promise it.
func (r *reading) isDecided() bool {
	if count(r.views[0], "r") > r.q.Nodes()-r.q.Need() {
		return true
	}
	return !slices.ContainsFunc(r.views, func(views []view) bool { return count(views, "k") < r.q.Need() })
}

// lacking returns the view with which to restore a register that too few nodes know; nil if enough
// nodes know it.
func (r *reading) lacking(i int) (*view, error) {
	views, need := r.views[i], r.q.Need()
	known, unknowing := count(views, "k"), count(views, "u")
	late := false // a node that is not out of use has not answered, and may know what no other node does
	for node := range views {
		votes, _ := r.q.Vote(node)
		late = late || views[node].says == silent && (votes || !r.absent[node])
	}
	switch {
	case known >= need:
		return nil, nil
	case count(views, "r") > 0:
		return nil, ErrSuperseded
	case known+unknowing < need, known > 0 && late, count(views, "v") > 0:
		return nil, r.quorumError(i)
	}
	return merged(views, "ku"), nil // a larger ballot is later, also on a node without a vote
}

// restore writes registers to the nodes that do not know them: the registers that too few nodes
// know, and with keeps all of them. It returns the nodes that took or knew the first register when
// it was restored. Begin asks these again for their promise; a plain read does not, because it has
// read what they were given.
func (r *reading) restore(ctx context.Context) (restored []bool, err error) {
	give := make([]*view, len(r.given))
	knew := make([]int, len(r.given))
	some := false
	for i := range r.registers {
		if r.given[i], err = r.lacking(i); err != nil && !r.keeps {
			return nil, err
		}
		knew[i] = count(r.views[i], "k")
		switch give[i] = r.given[i]; {
		case r.keeps && knew[i] >= r.q.Need():
			give[i] = merged(r.views[i], "k")
		case r.keeps && knew[i] == 0 && give[i] != nil && give[i].isNothing():
			give[i] = nil // never written: there is nothing to know
			for node := range r.views[i] {
				if has := &r.views[i][node]; has.says == unknown {
					has.says = knows
				}
			}
		}
		some = some || give[i] != nil && count(r.views[i], "u") > 0
	}
	restored = make([]bool, r.q.Nodes())
	if !some || r.only && r.ballot == 0 {
		return restored, nil
	}
	of := make([][]int, r.q.Nodes()) // by node: the registers that it is given
	answers, err := r.q.Ask(ctx, &bridge.Question{
		Op: opRestore, Key: r.registers[0].key,
		Call: func(node int) *bridge.Call {
			call := &bridge.Call{Script: restoreScript}
			for i, v := range give {
				if has := &r.views[i][node]; v != nil && has.says == unknown {
					of[node] = append(of[node], i)
					call.Keys = append(call.Keys, r.names[i])
					call.Args = append(call.Args, has.process, decimal(v.promise), decimal(v.ballot), decimal(v.step), v.value,
						milliseconds(max(v.left, r.registers[i].keep)))
				}
			}
			if len(call.Keys) == 0 {
				return nil
			}
			return call
		},
		Decided: func([]*bridge.Answer) bool { return false }, // waits for all nodes
	})
	if err != nil {
		return nil, err
	}
	wrote := make([]bool, len(r.given))
	for node, a := range answers() {
		if len(a.Texts) != len(of[node])+1 {
			continue
		}
		for n, i := range of[node] {
			switch has := &r.views[i][node]; parseView("", a.Texts[1+n]).says {
			case takes:
				wrote[i] = true
				*has = *give[i]
				fallthrough
			case knows:
				has.says = knows
				restored[node] = restored[node] || i == 0
			}
		}
	}
	for i, v := range r.given {
		if v == nil || !wrote[i] || v.isNothing() {
			continue
		}
		log := r.q.Logger().Warn
		if knew[i] == 0 || knew[i] < r.q.Need()-1 {
			log = r.q.Logger().Error
		}
		log("register: too few nodes know a register: it goes on from what was found, and what only others knew is lost",
			"key", r.registers[i].key, "knew", knew[i], "ballot", v.ballot, "promise", v.promise)
	}
	return restored, nil
}

// states returns what was read, by register.
func (r *reading) states() []State {
	clocks := slices.DeleteFunc(slices.Sorted(slices.Values(r.times)), func(t uint64) bool { return t == 0 })
	var now time.Time
	if len(clocks) > 0 {
		now = time.UnixMicro(int64(clocks[(len(clocks)-1)/2]))
	}
	all := make([]State, len(r.registers))
	for i, v := range r.given {
		if v == nil {
			v = merged(r.views[i], "k")
		}
		s := State{Value: []byte(v.value), Ballot: v.ballot, Now: now, name: r.names[i]}
		for node := range r.views[i] {
			if has := &r.views[i][node]; has.says == knows && has.ballot == v.ballot && has.step == v.step {
				s.Nodes++
			}
		}
		all[i] = s
	}
	return all
}

// quorumError is the error of a register that too few nodes know.
func (r *reading) quorumError(i int) error {
	e := &redlock.QuorumError{Op: opRead, Key: r.registers[i].key, Succeeded: count(r.views[i], "k"), Need: r.q.Need(), Nodes: r.q.Nodes()}
	for node := range r.views[i] {
		err := r.errs[node]
		switch v := &r.views[i][node]; v.says {
		case knows, refused:
			continue
		case unknown:
			err = errUnknowing{}
		case version:
			err = v.why
		}
		e.Errs = append(e.Errs, nodeError(r.q, node, opRead, err)...)
	}
	return e
}
