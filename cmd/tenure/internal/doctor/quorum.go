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
	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/internal/view"
	"github.com/tenure-dev/tenure/redlock"
)

// quorum has a Quorum look at the nodes, and adds its findings.
func (e *examination) quorum(ctx context.Context, q *redlock.Quorum) {
	c, _ := admin.New(q) // it fails only without a Quorum or for an option
	statuses := Settled(ctx, q, settleWithin, undecided)
	nodes := view.All(statuses, func(s redlock.NodeStatus) view.Node { return view.NewNode(s, nil, time.Now()) })
	for i, is := range nodes {
		n := e.node(is.Node)
		n.Votes, n.Version, n.Uptime = is.Votes, is.Version, is.Uptime
		e.status(ctx, &statuses[i], e.servers[i]) // there is one server for each node, because Open accepted all URLs
	}
	// Nodes that refuse this user may vote for others.
	if q := view.QuorumOf(nodes); q.Votes+q.Hidden < q.Need {
		e.found.add(Finding{Severity: Fault, Code: "no_quorum", Seen: fmt.Sprintf("%d of %d nodes vote, and %d are needed: no lease is granted", q.Votes, q.Total, q.Need),
			Advice: "see the findings of the nodes"})
	}
	e.told(ctx, c, statuses)
}

// Settled returns the nodes once the function undecided is false for all of them, or after the time
// within.
func Settled(ctx context.Context, q *redlock.Quorum, within time.Duration, undecided func(redlock.NodeStatus) bool) []redlock.NodeStatus {
	enough, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		statuses := q.Nodes(ctx)
		if enough.Err() != nil || !slices.ContainsFunc(statuses, undecided) {
			return statuses
		}
		_ = clock.Sleep(enough, lookEvery)
	}
}

// lookEvery is the pause between two looks of Settled.
const lookEvery = 50 * time.Millisecond

// undecided reports whether the Quorum may still find out that the node votes, or why it does not.
func undecided(s redlock.NodeStatus) bool {
	var known *redlock.ConditionError
	return !s.Votes && (!errors.As(s.Err, &known) || known.Condition == redlock.ConditionRestarted)
}

// status adds what a Quorum knows of a node, unless it was found before.
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
	case server.info != nil && redlock.ErrorType(s.Err) == "timeout":
		e.found.add(server.finding(Fault, "timeout", "it answers INFO, and holds back what may write",
			"end a CLIENT PAUSE with CLIENT UNPAUSE, wait for a FAILOVER or end it with FAILOVER ABORT, or look for a disk that hangs"))
	case server.info != nil:
		// The server answers, but the Quorum's connection was ended, by a balancer in between for
		// example.
		if !e.found.has(s.Node, string(redlock.ConditionSeveralServers)) {
			e.found.add(Finding{Severity: Fault, Code: "unreachable", Nodes: []string{s.Node}, Seen: "it has answered, and then did not: " + s.Err.Error(), Advice: "see its log, and what is in between"})
		}
	default:
		e.found.add(server.diagnose(ctx, cmp.Or(server.err, s.Err)))
	}
	for _, warning := range s.Warnings {
		if errors.As(warning, &known) { // each warning is a ConditionError
			e.condition(Warning, s.Node, known, server)
		}
	}
}

// condition adds a condition that a Quorum has found.
func (e *examination) condition(severity Severity, node string, known *redlock.ConditionError, server *server) {
	code := string(known.Condition)
	if e.found.has(node, code) || server.reads && known.Condition == redlock.ConditionNoPermission {
		return
	}
	if slices.Contains(byTurns, known.Condition) && e.found.has(node, string(redlock.ConditionSeveralServers)) {
		return // the several servers are the cause
	}
	seen := cmp.Or(known.Detail, view.Said(known.Err))
	if !known.Until.IsZero() {
		seen = strings.TrimPrefix(seen+"; it votes again at "+known.Until.Format(time.DateTime), "; ")
	}
	seen = cmp.Or(seen, strings.ReplaceAll(code, "_", " "))
	e.found.add(Finding{Severity: severity, Code: code, Nodes: []string{node}, Seen: seen, Advice: redlock.Advice(known) + here[known.Condition]})
}

// byTurns lists the conditions that a node seems to have when several servers answer at its address
// by turns.
var byTurns = []redlock.Condition{redlock.ConditionRestarted, redlock.ConditionQuarantined, redlock.ConditionClockJumped, redlock.ConditionClockWrong}

// here says how the command line does what the advice of redlock says for a program.
var here = map[redlock.Condition]string{
	redlock.ConditionReplicated:  "; here --with-replicas",
	redlock.ConditionAnotherList: "; here TENURE_NODES, or --nodes, and --without-restart-gate",
}
