package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/view"
	"github.com/tenure-dev/tenure/redlock"
)

// quorum has a Quorum look at the nodes.
func (e *examination) quorum(ctx context.Context, q *redlock.Quorum) {
	c, _ := admin.New(q) // there is a Quorum, and no option
	statuses := Settled(ctx, q, settleWithin, undecided)
	nodes := view.All(statuses, func(s redlock.NodeStatus) view.Node { return view.NewNode(s, nil, time.Now()) })
	for i, is := range nodes {
		n := e.node(is.Node)
		n.Votes, n.Version, n.Uptime = is.Votes, is.Version, is.Uptime
		e.status(ctx, &statuses[i], e.servers[i]) // all have one, or there were no Quorum
	}
	// Nodes that refuse this user may vote for others.
	if q := view.QuorumOf(nodes); q.Votes+q.Hidden < q.Need {
		e.found.add(Finding{Severity: Fault, Code: "no_quorum", Seen: fmt.Sprintf("%d of %d nodes vote, and %d are needed: no lease is granted", q.Votes, q.Total, q.Need),
			Advice: "see the findings of the nodes"})
	}
	e.told(ctx, c, statuses)
}

// Settled are the nodes once none is undecided, or after a while.
func Settled(ctx context.Context, q *redlock.Quorum, within time.Duration, undecided func(redlock.NodeStatus) bool) []redlock.NodeStatus {
	enough, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		statuses := q.Nodes(ctx)
		if enough.Err() != nil || !slices.ContainsFunc(statuses, undecided) {
			return statuses
		}
		select {
		case <-time.After(lookEvery):
		case <-enough.Done():
		}
	}
}

// lookEvery is how often Settled asks.
const lookEvery = 50 * time.Millisecond

// undecided reports whether it may still come out that a node votes, or why it does not.
func undecided(s redlock.NodeStatus) bool {
	var known *redlock.ConditionError
	return !s.Votes && (!errors.As(s.Err, &known) || known.Condition == redlock.ConditionRestarted)
}

// status adds what a Quorum knows of a node, and was not found before.
func (e *examination) status(ctx context.Context, s *redlock.NodeStatus, server *server) {
	var known *redlock.ConditionError
	switch {
	case s.Err == nil:
	case errors.As(s.Err, &known):
		severity := Fault
		if known.Condition == redlock.ConditionQuarantined || known.Condition == redlock.ConditionClockJumped {
			severity = Warning
		}
		e.condition(severity, s.Node, known, server)
	case server.err == nil && server.info != nil && redlock.ErrorType(s.Err) != "timeout":
		// It answers, and the Quorum's connection was ended: behind a balancer, say.
		if !e.found.has(s.Node, string(redlock.ConditionSeveralServers)) {
			e.found.add(Finding{Severity: Fault, Code: "unreachable", Nodes: []string{s.Node}, Seen: "it has answered, and then did not: " + s.Err.Error(), Advice: "see its log, and what is in between"})
		}
	default:
		e.found.add(server.diagnose(ctx, cmp.Or(server.err, s.Err)))
	}
	for _, warning := range s.Warnings {
		if errors.As(warning, &known) { // each is one
			e.condition(Warning, s.Node, known, server)
		}
	}
}

// condition adds one that a Quorum has found.
func (e *examination) condition(severity Severity, node string, known *redlock.ConditionError, server *server) {
	code := string(known.Condition)
	if e.found.has(node, code) || server.reads && known.Condition == redlock.ConditionNoPermission {
		return
	}
	if slices.Contains(byTurns, known.Condition) && e.found.has(node, string(redlock.ConditionSeveralServers)) {
		return // that is why
	}
	seen := known.Detail
	if seen == "" && known.Err != nil {
		seen = known.Err.Error()
	}
	if !known.Until.IsZero() {
		seen = strings.TrimPrefix(seen+"; it votes again at "+known.Until.Format(time.DateTime), "; ")
	}
	seen = cmp.Or(seen, strings.ReplaceAll(code, "_", " "))
	e.found.add(Finding{Severity: severity, Code: code, Nodes: []string{node}, Seen: seen, Advice: redlock.Advice(known) + here[known.Condition]})
}

// byTurns is what a node seems to be at which several servers answer by turns.
var byTurns = []redlock.Condition{redlock.ConditionRestarted, redlock.ConditionQuarantined, redlock.ConditionClockJumped, redlock.ConditionClockWrong}

// here is how a command line does what redlock's advice says for a program.
var here = map[redlock.Condition]string{
	redlock.ConditionReplicated:  "; here --with-replicas",
	redlock.ConditionAnotherList: "; here TENURE_NODES, or --nodes",
}
