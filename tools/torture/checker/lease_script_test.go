package checker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/torture/checker"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

const (
	msec = time.Millisecond
	ttl  = time.Second
	// validity is what a TTL of one second leaves with the settings below.
	validity = 988 * msec
)

// script is a history that a test makes up. Its times are milliseconds; client n has one life,
// cn.1.
type script struct {
	history.History
	t      *testing.T
	number int
}

func newScript(t *testing.T) *script {
	return &script{t: t, History: history.History{
		Account: history.Account{Workload: "leases", Undecided: time.Minute, Servers: 5, Over: at(90_000)},
		Records: make(map[string][]history.Record),
	}}
}

func at(millis int) history.Instant { return history.Instant(time.Duration(millis) * msec) }

func name(client int) string { return fmt.Sprintf("c%d.1", client) }

func (s *script) record(client int, r history.Record) {
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
	s.record(client, history.Record{Kind: history.Want, At: at(begun - 50), Lease: l.id, Key: l.key, TTL: ttl, Text: "wait"})
	s.record(client, history.Record{
		Kind: history.Grant, At: at(granted), Lease: l.id, Token: token, Deadline: at(begun).Add(validity),
	})
	return l
}

// valid adds an answer of Err; the last extension began when told.
func (l *lease) valid(asked, extended int) *lease {
	l.s.record(l.client, history.Record{Kind: history.Valid, At: at(asked), Lease: l.id, Deadline: at(extended).Add(validity)})
	return l
}

func (l *lease) lost(seen int) *lease {
	l.s.record(l.client, history.Record{Kind: history.Lost, At: at(seen), Lease: l.id, Text: "refused"})
	return l
}

func (l *lease) release(when int) *lease {
	l.s.record(l.client, history.Record{Kind: history.Release, At: at(when), Lease: l.id})
	return l
}

// kill ends a client.
func (s *script) kill(client, when int) {
	s.Lives = append(s.Lives, history.Life{Name: name(client), Killed: at(when), Ended: at(when + 5), Err: "signal: killed"})
}

// stop ends a client in order.
func (s *script) stop(client, when int, leak string) {
	s.record(client, history.Record{Kind: history.Stop, At: at(when), Text: leak})
	s.Lives = append(s.Lives, history.Life{Name: name(client), Ended: at(when + 5)})
}

// strike adds something that was done to server 1.
func (s *script) strike(kind plan.Kind, when int, jump time.Duration) {
	s.jump(kind, when, 80_000, jump)
}

// jump adds a step of the clock of server 1, and when it was taken back.
func (s *script) jump(kind plan.Kind, when, back int, by time.Duration) {
	s.Strikes = append(s.Strikes, history.Strike{Kind: kind, From: at(when), Done: at(when + 1), Heal: at(back), To: at(back + 1), Jump: by})
}

// check judges the history and expects these violations and no others, each once unless counted.
func (s *script) check(want ...checker.Kind) *checker.Verdict {
	s.t.Helper()
	v := checker.Check(&s.History, nil)
	var got []checker.Kind
	for _, x := range v.Violations {
		require.NotEmpty(s.t, x.Text)
		got = append(got, x.Kind)
	}
	require.ElementsMatch(s.t, want, got, "%v", v.Violations)
	return v
}
