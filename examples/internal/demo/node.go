package demo

import (
	"errors"
	"fmt"
	"time"

	"github.com/tenure-dev/tenure/examples/internal/demo/service"
	"github.com/tenure-dev/tenure/redlock"
)

// node is one of the nodes. The Demo's mutex guards it.
type node struct {
	number int
	host   string
	state  string
	votes  bool   // as the demonstration's own Quorum sees it
	why    string // it does not vote
	known  bool   // it has voted
	told   bool   // that it votes
	outage *Item  // nil for none
}

// observe asks the nodes whether they vote, until the Demo is closed.
func (d *Demo) observe() {
	again := time.NewTicker(observeEvery)
	defer again.Stop()
	var q *redlock.Quorum
	var as service.Settings
	defer func() { _ = q.Close() }() // a nil one, too
	for {
		if s := d.Settings(); q == nil || s.Prefix != as.Prefix {
			_ = q.Close()
			var err error
			if q, err = d.cfg.Observe(s); err != nil {
				d.mu.Lock()
				defer d.mu.Unlock()
				d.say(Bad, fmt.Sprintf("the nodes cannot be observed: %v", err))
				return
			}
			as = s
		}
		d.observed(q.Nodes(d.ctx))
		select {
		case <-again.C:
		case <-d.ctx.Done():
			return
		}
	}
}

// observed takes note of which nodes vote. A change is told when it was seen twice: on a busy
// machine an answer may come late once.
func (d *Demo) observed(nodes []redlock.NodeStatus) {
	if d.ctx.Err() != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.changedLocked()
	for i, s := range nodes {
		n := d.nodes[i]
		again := n.votes == s.Votes
		n.votes, n.why = s.Votes, reason(s)
		if !again || n.told == s.Votes && n.known {
			continue
		}
		if n.known {
			text := "votes"
			if !s.Votes {
				text = "does not vote: " + n.why
			}
			d.say(Info, fmt.Sprintf("node %d %s", n.number, text))
		}
		n.told, n.known = s.Votes, s.Votes || n.known
	}
}

// reason is why a node does not vote, in a few words; empty if it does.
func reason(s redlock.NodeStatus) string {
	var condition *redlock.ConditionError
	switch {
	case s.Votes:
		return ""
	case !s.QuarantinedUntil.IsZero():
		return "quarantined until " + s.QuarantinedUntil.Format(time.TimeOnly)
	case errors.As(s.Err, &condition):
		return string(condition.Condition)
	}
	return redlock.ErrorType(s.Err)
}

// beginOutage puts an outage on the timeline, and endOutage ends it. Both are called with mu held.
func (d *Demo) beginOutage(of **Item, i Item) {
	d.endOutage(of)
	i.Kind, i.From = KindOutage, time.Now().UnixMilli()
	*of = d.addItem(i)
}

func (d *Demo) endOutage(of **Item) {
	if *of != nil {
		(*of).To = time.Now().UnixMilli()
		d.feed.changed(*of)
		*of = nil
	}
}
