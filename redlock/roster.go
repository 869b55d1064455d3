package redlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/bridge"
	"github.com/tenure-dev/tenure/redlock/internal/roster"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// readRoster is bridge.ReadRoster.
func readRoster(ctx context.Context, client valkey.Client, prefix string) ([]bridge.RosterList, error) {
	if err := checkContext(ctx); err != nil {
		return nil, err
	}
	results := client.DoMulti(ctx, client.B().Hgetall().Key(wire.RosterKeys(prefix).Lock).Build(), wire.TimeCommand(client))
	fields, err := results[0].AsStrMap()
	at := wire.Decode([]*wire.Call{{Op: wire.Time}}, results[1], nil)[0]
	if err = errors.Join(err, at.Err); err != nil {
		return nil, fmt.Errorf("redlock: cannot read who uses a server: %w", err)
	}
	var all []bridge.RosterList
	for _, e := range wire.ParseRoster(fields, at.Server).Entries {
		switch e.Field[0] {
		case wire.RosterList:
			ttl, skew := roster.Limits(e)
			all = append(all, bridge.RosterList{Names: e.Field[4:], By: e.Says[0], Age: e.Age, MaxTTL: ttl, Skew: skew})
		case wire.RosterRefused:
			all = append(all, bridge.RosterList{Names: e.Says[1:], By: e.Field[1], Age: e.Age, Refused: e.Says[0]})
		}
	}
	return all, nil
}

// newRoster makes the roster, which decides whether leases count that the Quorum is granted.
func (q *Quorum) newRoster() *roster.Roster {
	names := make([]string, len(q.nodes))
	for i, m := range q.nodes {
		names[i] = m.name
	}
	return roster.New(roster.Config{
		Names: names, Node: func(i int) roster.Node { return q.nodes[i] }, Need: q.need, Keys: &q.rosterKeys, Clock: q.clock,
		Identity: q.cfg.lease.identity, MaxTTL: q.cfg.maxTTL, Skew: q.cfg.clockSkew, RestartGate: q.cfg.restartGate,
		Timeout: q.cfg.timeout(q.cfg.lease.ttl), LookEvery: q.cfg.inspectEvery(), Lifetime: roster.Lifetime(q.cfg.quarantineFor(q.cfg.maxTTL, q.cfg.clockSkew)), Quarantine: q.cfg.quarantine,
		Background: q.later, Longest: q.cfg.others.learn, Tell: q.tellOfOthers,
	})
}

// tellOfOthers reports what the roster finds out about other processes. They need not be in the way
// of this one.
func (q *Quorum) tellOfOthers(about roster.Matter, i int, why *wire.Fault) {
	is := q.conditionError(why)
	switch about {
	case roster.Differing:
		q.nodes[i].suffers(differing, is)
	case roster.Refused:
		q.nodes[i].suffers(excluding, is)
	case roster.Stopped:
		if m := (matter{trouble: refused}); is == nil {
			q.news.over(m, "")
		} else {
			q.news.is(m, string(is.Condition), "", "reason", is)
		}
		for _, n := range q.nodes {
			n.tell()
		}
	}
}

// unadmitted returns the error of an acquisition whose grants would not count, for that reason.
func (q *Quorum) unadmitted(key string, why error) error {
	replies := make([]vote.Reply, len(q.nodes))
	for i := range replies {
		replies[i] = vote.Reply{Answer: wire.Answer{Verdict: wire.Failed}, Err: why}
	}
	return q.quorumError(OpAcquire, key, vote.Outcome{Replies: replies})
}
