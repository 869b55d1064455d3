package checker_test

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/chaos/checker"
	"github.com/tenure-dev/tenure/tools/chaos/record"
	"github.com/tenure-dev/tenure/tools/harness/fault"
	"github.com/tenure-dev/tenure/tools/harness/history"
)

// clean is a history in which much happens and nothing is wrong.
func clean(t *testing.T) *script {
	s := newScript(t)
	s.grant(0, 10, 1000).valid(1020, 998).write(1030, true).release(1100)
	s.grant(1, 20, 1105).valid(1400, 1360).valid(2300, 1360).write(2340, true) // frozen until after its deadline
	s.grant(0, 30, 2360).valid(2400, 2358).write(2410, true)                   // killed
	s.grant(1, 40, 3350).valid(3400, 3348).write(3360, true).lost(3600)        // a quorum forgot it
	s.grant(2, 50, 3700).valid(3800, 3698).write(3710, true).release(3900).write(4000, true)
	s.grant(1, 60, 4100).write(4110, true).release(4200)
	s.kill(0, 2500)
	s.record(2, record.Record{Kind: record.Want, At: at(4100), Lease: "c2.1/99", Key: "a", TTL: ttl, Text: "try"})
	s.record(2, record.Record{Kind: record.Fail, At: at(4150), Lease: "c2.1/99", Text: "held"})
	s.record(1, record.Record{Kind: record.Votes, At: at(91_000)})
	s.record(1, record.Record{Kind: record.Want, At: at(91_000), Lease: "c1.1/98", Key: "a", TTL: ttl, Text: "probe"})
	s.record(1, record.Record{Kind: record.Grant, At: at(91_200), Lease: "c1.1/98", Token: 70, Deadline: at(91_100).Add(validity)})
	s.record(1, record.Record{Kind: record.Release, At: at(91_210), Lease: "c1.1/98"})
	s.stop(1, 92_000, "")
	s.stop(2, 92_000, "")
	s.strike(fault.RestartEmpty, 1200, 0)
	s.strike(fault.ClockForward, 3000, time.Second)
	return s
}

func TestCleanHistoryPasses(t *testing.T) {
	v := clean(t).check()
	require.Equal(t, porcupine.Ok, v.Porcupine)
	require.Equal(t, 14, v.Operations)
	require.Equal(t, 7, v.Grants)
	require.Equal(t, 4, v.Releases)
	require.Equal(t, 8, v.Asked)
	require.Equal(t, map[string]int{"held": 1}, v.Refusals)
	require.Equal(t, map[string]int{"refused": 1}, v.Losses)
	require.Equal(t, map[string]int{"restart-empty": 1, "clock-forward": 1}, v.Faults)
	require.Equal(t, 7, v.Accepted)
	require.Equal(t, 1, v.Late)
	require.Equal(t, 2, v.Stopped)
	require.Equal(t, 1, v.Probes)
	require.Equal(t, time.Second, v.Voting)
	require.Equal(t, 200*ms, v.Reacting)
	require.Empty(t, v.Overlaps)
	require.Empty(t, v.Disorders)
}

func TestLeftoverKeyIsFound(t *testing.T) {
	s := clean(t)
	s.Leftover = []string{"server 2: chaos:{a}"}
	s.check(checker.Leftover)
}

func TestLeakedGoroutineIsFound(t *testing.T) {
	s := clean(t)
	s.stop(3, 92_000, "found unexpected goroutines")
	s.check(checker.Leaked)
}

func TestClientThatEndsByItselfIsFound(t *testing.T) {
	s := clean(t)
	s.Lives = append(s.Lives, history.Life{Name: "c4.1", Err: "exit status 2", Stderr: "panic: oops"})
	v := s.check(checker.Failed)
	require.Contains(t, v.Violations[0].Text, "panic: oops")
}

func TestUnavailableKeyIsFound(t *testing.T) {
	s := clean(t)
	s.record(2, record.Record{Kind: record.Want, At: at(91_000), Lease: "c2.1/97", Key: "b", TTL: ttl, Text: "probe"})
	s.record(2, record.Record{Kind: record.Fail, At: at(94_000), Lease: "c2.1/97", Text: "deadline_exceeded"})
	s.check(checker.Unavailable)
}

func TestSuiteFailureIsFound(t *testing.T) {
	s := clean(t)
	s.Failures = []string{"no quorum of servers votes"}
	s.check(checker.Failed)
}

func TestLongestOutage(t *testing.T) {
	s := newScript(t)
	s.slowGrant(0, 1, 1000, 1010).release(1200) // wanted from 950
	s.slowGrant(1, 2, 1300, 1310).release(1400) // wanted from 1250
	s.slowGrant(2, 3, 1900, 1910)               // wanted from 1850, killed
	s.kill(2, 2000)
	v := s.check()
	require.Equal(t, map[string]time.Duration{"a": 60 * ms}, v.Outages)

	s.record(0, record.Record{Kind: record.Want, At: at(1220), Lease: "c0.1/9", Key: "a", TTL: ttl, Text: "wait"})
	s.record(0, record.Record{Kind: record.Fail, At: at(1305), Lease: "c0.1/9", Text: "canceled"})
	require.Equal(t, 90*ms, s.check().Outages["a"])
}

func TestUndecidedIsNoPass(t *testing.T) {
	s := newScript(t)
	// Hundreds of acquisitions at once, none of which ends before the others: an exponential number
	// of orders, and none is right because of the last.
	for i := range 300 {
		s.slowGrant(i, uint64(1000+i), 1000, 1900)
	}
	s.Settings.Undecided = time.Nanosecond
	v := checker.Check(&s.History)
	require.Equal(t, porcupine.Unknown, v.Porcupine)
	require.Equal(t, 1, v.Count(checker.Undecided))
}
