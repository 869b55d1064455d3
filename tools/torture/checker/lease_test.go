package checker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/torture/checker"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// clean is a history in which much happens and nothing is wrong.
func clean(t *testing.T) *script {
	s := newScript(t)
	s.grant(0, 10, 1000).valid(1020, 998).release(1100)
	s.grant(1, 20, 1105).valid(1400, 1360).valid(2300, 1360) // frozen until after its deadline
	s.grant(0, 30, 2360).valid(2400, 2358)                   // killed
	s.grant(1, 40, 3350).valid(3400, 3348).lost(3600)        // a quorum forgot it
	s.grant(2, 50, 3700).valid(3800, 3698).release(3900)
	s.grant(1, 60, 4100).release(4200)
	s.kill(0, 2500)
	s.record(2, history.Record{Kind: history.Want, At: at(4100), Lease: "c2.1/99", Key: "a", TTL: ttl, Text: "try"})
	s.record(2, history.Record{Kind: history.Fail, At: at(4150), Lease: "c2.1/99", Text: "held"})
	s.record(1, history.Record{Kind: history.Votes, At: at(91_000)})
	s.record(1, history.Record{Kind: history.Want, At: at(91_000), Lease: "c1.1/98", Key: "a", TTL: ttl, Text: "probe"})
	s.record(1, history.Record{Kind: history.Grant, At: at(91_200), Lease: "c1.1/98", Token: 70, Deadline: at(91_100).Add(validity)})
	s.record(1, history.Record{Kind: history.Release, At: at(91_210), Lease: "c1.1/98"})
	s.stop(1, 92_000, "")
	s.stop(2, 92_000, "")
	s.strike(plan.RestartEmpty, 1200, 0)
	s.strike(plan.ClockForward, 3000, time.Second)
	return s
}

func TestCleanHistoryPasses(t *testing.T) {
	v := clean(t).check()
	require.Equal(t, map[string]int{
		"clients": 3, "clients stopped in order": 2, "acquisitions": 8, "leases granted": 7, "leases released": 4,
		"acquisitions that failed: held": 1, "leases lost: refused": 1, "faults: restart-empty": 1, "faults: clock-forward": 1,
		"keys acquired after the faults": 1, "ms until a quorum voted after the faults": 1000, "operations that porcupine ordered": 14,
	}, v.Counts)
	require.Empty(t, v.Excused)
}

func TestUnavailableKeyIsFound(t *testing.T) {
	s := clean(t)
	s.record(2, history.Record{Kind: history.Want, At: at(91_000), Lease: "c2.1/97", Key: "b", TTL: ttl, Text: "probe"})
	s.record(2, history.Record{Kind: history.Fail, At: at(94_000), Lease: "c2.1/97", Text: "deadline_exceeded"})
	s.check(checker.Unavailable)
}

func TestUndecidedIsNoPass(t *testing.T) {
	s := newScript(t)
	// Hundreds of acquisitions at once, none of which ends before the others: an exponential number
	// of orders, and none is right because of the last.
	for i := range 300 {
		s.slowGrant(i, uint64(1000+i), 1000, 1900)
	}
	s.Undecided = time.Nanosecond
	v := checker.Check(&s.History, nil)
	require.Equal(t, 1, v.Count(checker.Undecided))
}

// Err is nil neither after the deadline, nor after a loss or a release.
func TestErrAfterTheEndIsFound(t *testing.T) {
	deadline := 998 + int(validity/msec)
	s := newScript(t)
	l := s.grant(0, 10, 1000).valid(deadline-1, 998).valid(deadline+2, 998)
	s.check()
	l.valid(deadline+3, 998)
	s.check(checker.Outlived)
	s = newScript(t)
	s.grant(0, 10, 1000).lost(1200).valid(1201, 998)
	s.check(checker.Outlived)
	s = newScript(t)
	s.grant(0, 10, 1000).release(1200).valid(1201, 998)
	s.check(checker.Outlived)
}

// A process with another list of nodes holds nothing.
func TestStrangerThatIsAdmitted(t *testing.T) {
	s := clean(t)
	want := history.Record{Kind: history.Want, At: at(5000), Lease: "c8.1/1", Key: "b", TTL: ttl, Text: history.OtherList}
	s.record(8, want)
	s.record(8, history.Record{Kind: history.Fail, At: at(5100), Lease: "c8.1/1", Text: "another_list"})
	require.Equal(t, 1, s.check().Counts["acquisitions with another list that failed: another_list"])
	want.Lease = "c8.1/2"
	s.record(8, want)
	s.record(8, history.Record{Kind: history.Grant, At: at(5100), Lease: "c8.1/2", Token: 5, Deadline: at(5000).Add(validity)})
	s.kill(8, 6000)
	s.check(checker.Admitted)
}

// Who is connected goes on when certificates have expired.
func TestExpiryThatEndsConnections(t *testing.T) {
	expire := func(heal int) *script {
		s := clean(t)
		for server := range 5 {
			s.Strikes = append(s.Strikes, history.Strike{Kind: plan.Expire, Server: server, From: at(900), Done: at(901), Heal: at(heal), To: at(heal + 1)})
		}
		return s
	}
	expire(5000).check() // there is a grant at 4100
	v := expire(7200).check(checker.Unavailable)
	require.Contains(t, v.Violations[0].Text, "certificates")
	s := expire(5000)
	for i := range s.Lives {
		s.Lives[i].Began = at(902) // nobody was connected
	}
	s.check(checker.Unavailable)
}
