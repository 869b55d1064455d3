package checker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/chaos/checker"
	"github.com/tenure-dev/tenure/tools/chaos/record"
	"github.com/tenure-dev/tenure/tools/chaos/resource"
	"github.com/tenure-dev/tenure/tools/harness/fault"
	"github.com/tenure-dev/tenure/tools/harness/history"
	"github.com/tenure-dev/tenure/tools/harness/report"
)

const (
	ms  = time.Millisecond
	ttl = time.Second
	// validity is what a TTL of one second leaves with the settings below.
	validity = 988 * ms
)

// script is a history that a test makes up. Its times are milliseconds; client n has one life,
// cn.1.
type script struct {
	checker.History
	t      *testing.T
	number int
}

func newScript(t *testing.T) *script {
	return &script{t: t, History: checker.History{
		Settings: checker.Settings{Drift: 0.01, Floor: 2 * ms, Skew: 500 * ms, Undecided: time.Minute, Servers: 5, Recovery: 2 * time.Second},
		Records:  make(map[string][]record.Record),
		Over:     at(90_000),
	}}
}

func at(millis int) history.Instant { return history.Instant(time.Duration(millis) * ms) }

func name(client int) string { return fmt.Sprintf("c%d.1", client) }

func (s *script) record(client int, r record.Record) {
	s.Records[name(client)] = append(s.Records[name(client)], r)
}

// lease is a lease under construction.
type lease struct {
	s      *script
	client int
	id     string
	key    string
	token  uint64
	begun  int
}

// grant adds a lease on key a whose round took 2 ms.
func (s *script) grant(client int, token uint64, granted int) *lease {
	return s.slowGrant(client, token, granted-2, granted)
}

// slowGrant adds a lease that was asked for long before, and whose round began when told.
func (s *script) slowGrant(client int, token uint64, begun, granted int) *lease {
	s.number++
	l := &lease{s: s, client: client, id: fmt.Sprintf("%s/%d", name(client), s.number), key: "a", token: token, begun: begun}
	s.record(client, record.Record{Kind: record.Want, At: at(begun - 50), Lease: l.id, Key: l.key, TTL: ttl, Text: "wait"})
	s.record(client, record.Record{
		Kind: record.Grant, At: at(granted), Lease: l.id, Token: token, Deadline: at(begun).Add(validity),
	})
	return l
}

// valid adds an answer of Err; the last extension began when told.
func (l *lease) valid(asked, extended int) *lease {
	l.s.record(l.client, record.Record{Kind: record.Valid, At: at(asked), Lease: l.id, Deadline: at(extended).Add(validity)})
	return l
}

func (l *lease) lost(seen int) *lease {
	l.s.record(l.client, record.Record{Kind: record.Lost, At: at(seen), Lease: l.id, Text: "refused"})
	return l
}

func (l *lease) release(when int) *lease {
	l.s.record(l.client, record.Record{Kind: record.Release, At: at(when), Lease: l.id})
	l.s.record(l.client, record.Record{Kind: record.Released, At: at(when + 1), Lease: l.id})
	return l
}

// write adds a write and what the resource decided.
func (l *lease) write(when int, accepted bool) *lease {
	l.s.Writes = append(l.s.Writes, resource.Write{At: at(when), Key: l.key, Token: l.token, Lease: l.id, Accepted: accepted})
	return l
}

// kill ends a client.
func (s *script) kill(client, when int) {
	s.Lives = append(s.Lives, history.Life{Name: name(client), Killed: at(when), Ended: at(when + 5), Err: "signal: killed"})
}

// stop ends a client in order.
func (s *script) stop(client, when int, leak string) {
	s.record(client, record.Record{Kind: record.Stop, At: at(when), Text: leak})
	s.Lives = append(s.Lives, history.Life{Name: name(client), Ended: at(when + 5)})
}

// strike adds something that was done to server 1.
func (s *script) strike(kind fault.Kind, when int, jump time.Duration) {
	s.Strikes = append(s.Strikes, record.Strike{Kind: kind, From: at(when), To: at(when + 1), Jump: jump})
}

// harm adds something that was done to a server, counted from 1, and put right later.
func (s *script) harm(kind fault.Kind, server, from, to int) {
	s.Strikes = append(s.Strikes,
		record.Strike{Kind: kind, Node: server - 1, From: at(from), To: at(from + 1)},
		record.Strike{Kind: kind, Node: server - 1, From: at(to), To: at(to + 1), Healed: true})
}

// tick adds a lease on key a of a tick that was due then, in ms since 1970.
func (s *script) tick(client int, tick int64, granted int) *lease {
	l := s.grant(client, uint64(granted), granted)
	for i := range s.Records[name(client)] {
		switch r := &s.Records[name(client)][i]; {
		case r.Lease != l.id:
		case r.Kind == record.Want:
			r.Text = "tick"
		case r.Kind == record.Grant:
			r.Tick = tick
		}
	}
	return l
}

// call adds a call of Pause or Resume that did not return yet.
func (s *script) call(client int, kind record.Kind, key string, floor int64, from int) *call {
	s.number++
	c := &call{s: s, client: client, id: fmt.Sprintf("%s/%d", name(client), s.number), floor: floor}
	s.record(client, record.Record{Kind: kind, At: at(from), Lease: c.id, Key: key, Floor: floor})
	return c
}

// pause adds one without an end that is there on all servers.
func (s *script) pause(client int, key string, version uint64, from, to int) *call {
	return s.call(client, record.Pause, key, record.Forever, from).returns(to, version, 5)
}

// resume adds the end of one.
func (s *script) resume(client int, key string, version uint64, floor int64, from, to int) {
	c := s.call(client, record.Resume, key, 0, from)
	c.floor = floor
	c.returns(to, version, 5)
}

// call is one of Pause or Resume.
type call struct {
	s      *script
	client int
	id     string
	floor  int64
}

// returns ends it without an error.
func (c *call) returns(when int, version uint64, nodes int) *call {
	c.s.record(c.client, record.Record{Kind: record.Marked, At: at(when), Lease: c.id, Floor: c.floor, Token: version, Nodes: nodes})
	return c
}

// fails ends it with an error.
func (c *call) fails(when int, why string) {
	c.s.record(c.client, record.Record{Kind: record.Marked, At: at(when), Lease: c.id, Text: why})
}

// check judges the history and expects these violations and no others, each once unless counted.
func (s *script) check(want ...report.Kind) *checker.Verdict {
	s.t.Helper()
	v := checker.Check(&s.History)
	var got []report.Kind
	for _, x := range v.Violations {
		require.NotEmpty(s.t, x.Text)
		got = append(got, x.Kind)
	}
	require.ElementsMatch(s.t, want, got, "%v", v.Violations)
	return v
}
