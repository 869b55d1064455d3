package checker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/chaos/checker"
	"github.com/tenure-dev/tenure/tools/chaos/record"
	"github.com/tenure-dev/tenure/tools/harness/fault"
)

func TestTickThatIsGrantedTwiceIsFound(t *testing.T) {
	s := newScript(t)
	s.tick(0, 900, 1000).release(1010)
	s.tick(1, 950, 1050).release(1060)
	s.check()
	s.tick(2, 900, 8000).release(8010)
	v := s.check(checker.Twice)
	require.Equal(t, "c0.1/1", v.Twins[0].Older.ID)
	require.Equal(t, "c2.1/3", v.Twins[0].Newer.ID)
}

// Keys have ticks of their own.
func TestTicksOfTwoKeys(t *testing.T) {
	s := newScript(t)
	s.tick(0, 900, 1000).release(1010)
	s.tick(1, 900, 1050).release(1060)
	for i := range s.Records["c1.1"] {
		s.Records["c1.1"][i].Key = "b"
	}
	s.check()
}

func TestTwinExclusions(t *testing.T) {
	const excluded, counts = true, false
	for name, test := range map[string]struct {
		strikes func(*script)
		want    bool
	}{
		"flush while it was granted": {func(s *script) { s.strike(fault.FlushAll, 999, 0) }, excluded},
		"flush later":                {func(s *script) { s.strike(fault.FlushAll, 1001, 0) }, counts},
		"a quorum is emptied": {func(s *script) {
			for n := 1; n <= 3; n++ {
				s.harm(fault.RestartEmpty, n, 2000+n, 2100)
			}
		}, excluded},
		"fewer are emptied": {func(s *script) {
			s.harm(fault.RestartEmpty, 1, 2000, 2100)
			s.harm(fault.RestartEmpty, 2, 2000, 2100)
		}, counts},
		"one of a bare quorum is emptied beside a dead one": {func(s *script) {
			s.harm(fault.FreezeServer, 1, 900, 3000)
			s.harm(fault.Cut, 2, 900, 9000)
			s.harm(fault.RestartEmpty, 3, 2000, 2100)
		}, excluded},
		"one of a bare quorum is emptied": {func(s *script) {
			s.harm(fault.FreezeServer, 1, 900, 1100)
			s.harm(fault.Cut, 2, 900, 1100)
			s.harm(fault.RestartEmpty, 3, 2000, 2100)
		}, counts},
		"one of more is emptied beside a dead one": {func(s *script) {
			s.harm(fault.Cut, 2, 900, 9000)
			s.harm(fault.RestartEmpty, 3, 2000, 2100)
		}, counts},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t)
			s.tick(0, 900, 1000).release(1010)
			test.strikes(s)
			s.tick(1, 900, 8000).release(8010)
			if test.want == counts {
				s.check(checker.Twice)
				return
			}
			v := s.check()
			require.Len(t, v.Twins, 1)
			require.NotEmpty(t, v.Twins[0].Excuse)
			breaches, twins := v.ExcludedTicks()
			require.Zero(t, breaches)
			require.Equal(t, 1, twins)
		})
	}
}

func TestTicksAfterThePauses(t *testing.T) {
	s := newScript(t)
	s.Settings.Ticks = []string{"a"}
	s.check(checker.Unavailable)

	s.resume(0, "a", 10, 91_000, 91_000, 91_100)
	s.tick(1, 91_100, 91_140).release(91_141) // asked for before that
	s.check(checker.Unavailable)
	s.record(1, record.Record{Kind: record.Want, At: at(91_200), Lease: "c1.1/90", Key: "a", TTL: ttl, Text: "tick"})
	s.record(1, record.Record{Kind: record.Fail, At: at(91_210), Lease: "c1.1/90", Text: "paused"})
	s.check(checker.Unavailable)
	s.tick(1, 91_300, 91_350).release(91_360)
	v := s.check()
	require.Equal(t, 150*time.Millisecond, v.Resuming)
	require.Equal(t, map[string]int{"paused": 1}, v.TickRefusals)

	s.Over = 0
	s.Records["c1.1"] = nil
	s.check() // it was interrupted
}

// Nobody waits for a tick: it is not out of reach because it is paused.
func TestTicksAreNoOutage(t *testing.T) {
	s := newScript(t)
	s.tick(0, 900, 1000).release(1010)
	s.record(0, record.Record{Kind: record.Want, At: at(1200), Lease: "c0.1/9", Key: "a", TTL: ttl, Text: "tick"})
	s.record(0, record.Record{Kind: record.Fail, At: at(1900), Lease: "c0.1/9", Text: "paused"})
	require.Empty(t, s.check().Outages)
}
