package redlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/clocks"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/roster"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Roster is what one server knows of the processes of a prefix that use it, see package roster: of
// those that said so a moment ago. Ages are by the clock of the server that was asked.
type Roster struct {
	MaxTTL  time.Duration // the longest in use; 0 for none
	Skew    time.Duration // the largest in use; 0 for none
	Lists   []RosterList
	Servers []RosterServer
	Refused []RosterRefusal
}

// RosterList is the nodes that processes have.
type RosterList struct {
	Names []string      // of the nodes
	By    string        // identity of the process that was seen last with it
	Age   time.Duration // since then
}

// RosterServer is a server process that was found under the name of a node.
type RosterServer struct {
	Name, ID string        // ID is its run_id
	By       string        // identity of the process that saw it last
	Age      time.Duration // since then
}

// RosterRefusal is a process that counts nothing, because others have other nodes.
type RosterRefusal struct {
	By        string    // its identity
	Condition Condition // ConditionAnotherList or ConditionSeveralServers
	Names     []string  // of its nodes
	Age       time.Duration
}

// ReadRoster asks one server, by way of a client of the caller, which processes of a prefix use it.
// It is for tools that look at nodes before they use them: it writes nothing. It needs the rights
// HGETALL and TIME, and waits as long as the client does, or until ctx ends.
//
// It is information. Errors are the client's, or say that the server keeps something else there; a
// server that no process of the prefix uses is none.
func ReadRoster(ctx context.Context, client valkey.Client, prefix string) (Roster, error) {
	if err := checkContext(ctx); err != nil {
		return Roster{}, err
	}
	results := client.DoMulti(ctx, client.B().Hgetall().Key(wire.RosterKeys(prefix).Lock).Build(), wire.TimeCommand(client))
	values, err := results[0].AsStrMap()
	if err != nil {
		return Roster{}, fmt.Errorf("redlock: cannot read who uses a server: %w", err)
	}
	at := wire.Decode([]*wire.Call{{Op: wire.Time}}, results[1], nil)[0]
	if at.Err != nil {
		return Roster{}, fmt.Errorf("redlock: cannot read a server's clock: %w", at.Err)
	}
	var r Roster
	known := wire.ParseRoster(values, at.Server)
	for _, l := range known.Lists {
		r.MaxTTL, r.Skew = max(r.MaxTTL, l.MaxTTL), max(r.Skew, l.Skew)
		r.Lists = append(r.Lists, RosterList{l.Names, l.By, l.Age})
	}
	for _, k := range known.Servers {
		r.Servers = append(r.Servers, RosterServer{k.Name, k.ID, k.By, k.Age})
	}
	for _, o := range known.Refused {
		r.Refused = append(r.Refused, RosterRefusal{o.By, Condition(o.Why), o.Names, o.Age})
	}
	return r, nil
}

// newRoster has it decided whether what the Quorum is granted counts.
func (q *Quorum) newRoster() *roster.Roster {
	names := make([]string, len(q.nodes))
	for i, m := range q.nodes {
		names[i] = m.name
	}
	return roster.New(roster.Config{
		Names: names, Node: func(i int) roster.Node { return q.nodes[i] }, Need: q.need,
		Keys: &q.rosterKeys, Identity: q.cfg.lease.identity, MaxTTL: q.cfg.maxTTL, Skew: q.cfg.clockSkew, RestartGate: q.cfg.restartGate,
		Timeout: q.cfg.timeout(q.cfg.lease.ttl), LookEvery: q.cfg.inspectEvery(),
		Quarantine: q.cfg.quarantine, Lifetime: q.cfg.lifetime(), Limits: &q.cfg.others,
		Clock: q.clock, Waits: &q.waits, Leads: q.clocks.LeadOfEach, Background: q.later, Observer: peers{q},
	})
}

// enter has the process say that it uses its nodes before it asks for the first lease, and returns
// why it may not have one.
func (q *Quorum) enter(ctx context.Context, key string) error {
	if why := q.roster.Enter(ctx); why != nil {
		return q.refusal(key, why)
	}
	return nil
}

// admitted returns why nothing counts that the process was granted; nil where it does.
func (q *Quorum) admitted(key string) error {
	if q.roster.Admitted() {
		return nil
	}
	if why := q.roster.Refused(); why != nil {
		return q.refusal(key, why)
	}
	return q.refusal(key, node.ErrTimeout) // too few nodes have answered who uses them
}

// refusal is the error of an acquisition of which nothing would count.
func (q *Quorum) refusal(key string, why error) error {
	o := vote.Outcome{Replies: make([]vote.Reply, len(q.nodes))}
	for i, m := range q.nodes {
		o.Replies[i] = vote.Reply{Answer: wire.Answer{Verdict: wire.Failed}, Err: why}
		if err := m.Status().Reason(); err != nil {
			o.Replies[i].Err = err
		}
	}
	return q.quorumError(OpAcquire, key, o)
}

// peers hears what the Quorum's nodes know of other processes, and tells people.
type peers struct{ q *Quorum }

// Lead takes over what a node keeps of how far its clock is ahead.
func (p peers) Lead(i int, lead *time.Duration, now clock.Instant) {
	p.q.clocks.Tell(i, lead, now)
	p.q.judgeClocks()
}

// Unwritten tells that a node cannot keep who uses it, or can again.
func (p peers) Unwritten(i int, why *wire.Fault) { p.tell(unwritten, i, why) }

// Differs tells how another process's list differs at a node.
func (p peers) Differs(i int, why *wire.Fault) { p.tell(differing, i, why) }

// Refused tells which processes were refused: they are in nobody's way.
func (p peers) Refused(i int, others []wire.Refusal) {
	var is *wire.Fault
	var all []string
	for _, o := range others {
		all = append(all, fmt.Sprintf("%s, with the nodes %s, %v ago", o.By, strings.Join(o.Names, ", "), o.Age.Round(time.Second)))
		is = &wire.Fault{Condition: wire.AnotherList, Detail: "processes were refused: " + strings.Join(all, "; ")}
	}
	p.tell(excluding, i, is)
}

// Longer logs that others use a longer TTL or skew.
func (p peers) Longer(why *wire.Fault) {
	p.q.cfg.logger.Info("redlock: a server that is restarted has no vote for longer than this process needs", "reason", p.q.conditionError(why))
}

func (p peers) tell(what trouble, i int, why *wire.Fault) {
	p.q.nodes[i].suffers(what, p.q.conditionError(why))
}

// newClocks compares the wall clocks of the servers.
func (q *Quorum) newClocks(nodes int) *clocks.Clocks {
	return clocks.New(clocks.Config{Nodes: nodes, Need: q.need, Skew: q.cfg.skew})
}

// judgeClocks tells which clocks are wrong now.
func (q *Quorum) judgeClocks() {
	for i, m := range q.nodes {
		m.suffers(wrongClock, q.conditionError(q.clocks.Wrong(i)))
	}
}

// nodeName is what a URL calls its node, or its address.
func nodeName(given, addr string) (string, error) {
	if given == "" {
		return addr, nil
	}
	if len(given) > maxName || strings.ContainsFunc(given, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", errors.New("has a name that is longer than 128 bytes, or has a control character in it")
	}
	return given, nil
}

const maxName = 128
