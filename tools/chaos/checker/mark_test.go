package checker_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/chaos/checker"
	"github.com/tenure-dev/tenure/tools/chaos/record"
	"github.com/tenure-dev/tenure/tools/harness/fault"
)

// paused is a history with a pause of key a that returned at 3000.
func paused(t *testing.T) *script {
	s := newScript(t)
	s.tick(0, 900, 1000).release(1010)
	s.pause(1, "a", 10, 2000, 3000)
	return s
}

func TestPausedTickIsFound(t *testing.T) {
	s := paused(t)
	s.tick(0, 4000, 4100).release(4110)
	v := s.check(checker.Unpaused)
	require.Equal(t, uint64(10), v.Breaches[0].Pause.Version)
	require.Equal(t, 2, v.TickGrants)
	require.Zero(t, v.Grants)
	require.Equal(t, map[string]int{"pause": 1}, v.Marks)
}

func TestTickThatIsPausedWithAllKeysIsFound(t *testing.T) {
	s := newScript(t)
	s.pause(1, "", 10, 2000, 3000)
	s.tick(0, 4000, 4100).release(4110)
	s.check(checker.Unpaused)
}

// A pause of which the first of two is excused is found with the second.
func TestEachPauseCounts(t *testing.T) {
	s := newScript(t)
	s.pause(1, "a", 10, 1000, 2000)
	s.strike(fault.FlushAll, 1500, 0)
	s.pause(1, "", 20, 2000, 3000)
	s.tick(0, 4000, 4100).release(4110)
	v := s.check(checker.Unpaused)
	require.Equal(t, uint64(20), v.Breaches[0].Pause.Version)
}

// A tick whose lease was taken before the pause returned is not begun after that.
func TestTickThatIsBegunLateIsFound(t *testing.T) {
	s := paused(t)
	s.tick(0, 2400, 2402)
	for i := range s.Records["c0.1"] {
		if r := &s.Records["c0.1"][i]; r.Kind == record.Grant && r.At == at(2402) {
			r.At = at(3001)
		}
	}
	s.check(checker.Unpaused)
}

// What a pause does not promise, or what has lifted it.
func TestTicksThatAreNotPaused(t *testing.T) {
	for name, test := range map[string]func(*script){
		"granted before it returned": func(s *script) {
			s.tick(0, 2900, 2999).release(3010)
		},
		"of another key": func(s *script) {
			l := s.tick(0, 4000, 4100).release(4110)
			for i := range s.Records["c0.1"] {
				if r := &s.Records["c0.1"][i]; r.Lease == l.id {
					r.Key = "b"
				}
			}
		},
		"no tick": func(s *script) { s.grant(0, 4100, 4100).release(4110) },
		"resumed": func(s *script) {
			s.resume(1, "a", 20, 3990, 3980, 3995)
			s.tick(0, 4000, 4100).release(4110)
		},
		"resumed by another, and not returned": func(s *script) {
			s.call(2, record.Resume, "a", 0, 4099)
			s.tick(0, 4000, 4100).release(4110)
		},
		"resumed, perhaps": func(s *script) {
			s.call(2, record.Resume, "a", 0, 3500).fails(3600, record.Unknown)
			s.tick(0, 4000, 4100).release(4110)
		},
		"resumed at the same time, perhaps": func(s *script) {
			s.call(2, record.Resume, "a", 0, 2500).fails(2900, record.Unknown)
			s.tick(0, 4000, 4100).release(4110)
		},
		"resumed at the same time, later": func(s *script) {
			s.resume(2, "a", 11, 2600, 2500, 2900)
			s.tick(0, 4000, 4100).release(4110)
		},
		"replaced by one that ends earlier": func(s *script) {
			s.call(2, record.Pause, "a", 3900, 3500).returns(3800, 20, 5)
			s.tick(0, 4000, 4100).release(4110)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := paused(t)
			test(s)
			s.check()
		})
	}
}

// What looks as if a pause was lifted, and has not.
func TestTicksThatArePausedStill(t *testing.T) {
	for name, test := range map[string]func(*script){
		"resumed before":       func(s *script) { s.resume(2, "a", 9, 1500, 1500, 1600) },
		"resumed before, late": func(s *script) { s.resume(2, "a", 9, 2500, 2500, 3500) },
		"resumed before, perhaps": func(s *script) {
			s.call(2, record.Resume, "a", 0, 1500).fails(1999, record.Unknown)
		},
		"resumed by one that died before": func(s *script) {
			s.call(2, record.Resume, "a", 0, 1500)
			s.kill(2, 1900)
		},
		"resumed after":                        func(s *script) { s.resume(2, "a", 20, 4200, 4101, 4200) },
		"resumed, but done was nothing":        func(s *script) { s.call(2, record.Resume, "a", 0, 3500).fails(3600, "no_quorum") },
		"resumed for ticks that are due later": func(s *script) { s.resume(2, "a", 20, 4001, 3500, 3600) },
		"all keys resumed":                     func(s *script) { s.resume(2, "", 20, 3500, 3500, 3600) },
		"another key resumed":                  func(s *script) { s.resume(2, "b", 20, 3500, 3500, 3600) },
		"paused again":                         func(s *script) { s.pause(2, "a", 20, 3500, 3600) },
		"paused again, perhaps": func(s *script) {
			s.call(2, record.Pause, "a", record.Forever, 3500).fails(3600, record.Unknown)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := paused(t)
			test(s)
			s.tick(0, 4000, 4100).release(4110)
			s.check(checker.Unpaused)
		})
	}
}

// A pause with an end is for what is due before that, and one that failed promises nothing.
func TestPausesThatPromiseLess(t *testing.T) {
	s := newScript(t)
	s.call(1, record.Pause, "a", 4001, 2000).returns(3000, 10, 5)
	s.tick(0, 4001, 4100).release(4110)
	s.check()
	s.tick(0, 4000, 4200).release(4210)
	s.check(checker.Unpaused)

	for _, why := range []string{record.Unknown, "deadline_exceeded", "no_quorum"} {
		s := newScript(t)
		s.call(1, record.Pause, "a", record.Forever, 2000).fails(3000, why)
		s.tick(0, 4000, 4100).release(4110)
		s.check()
	}
	s = newScript(t)
	s.call(1, record.Pause, "a", record.Forever, 2000)
	s.kill(1, 3000)
	s.tick(0, 4000, 4100).release(4110)
	s.check()
}

func TestPauseExclusions(t *testing.T) {
	const excluded, counts = true, false
	empty := func(servers ...int) func(*script) {
		return func(s *script) {
			for i, n := range servers {
				s.harm(fault.RestartEmpty, n, 4000+100*i, 4500+100*i)
			}
		}
	}
	for name, test := range map[string]struct {
		nodes   int
		strikes func(*script)
		want    bool
	}{
		"nothing":                    {3, func(*script) {}, counts},
		"flush during the pause":     {5, func(s *script) { s.strike(fault.FlushAll, 2500, 0) }, excluded},
		"flush as it returned":       {5, func(s *script) { s.strike(fault.FlushAll, 3000, 0) }, excluded},
		"flush before the pause":     {5, func(s *script) { s.strike(fault.FlushAll, 1998, 0) }, counts},
		"flush after the pause":      {5, func(s *script) { s.strike(fault.FlushAll, 3001, 0) }, counts},
		"restart during the pause":   {5, func(s *script) { s.harm(fault.RestartEmpty, 1, 2500, 2600) }, counts},
		"a quorum is emptied":        {5, empty(1, 2, 3), excluded},
		"fewer are emptied":          {5, empty(1, 2), counts},
		"one is emptied three times": {5, empty(1, 1, 1), counts},
		"a quorum is restarted with its data": {5, func(s *script) {
			for n := 1; n <= 3; n++ {
				s.harm(fault.RestartKeep, n, 4000, 4500)
			}
		}, counts},
		"a quorum is flushed": {5, func(s *script) {
			for n := range 3 {
				s.Strikes = append(s.Strikes, record.Strike{Kind: fault.FlushAll, Node: n, From: at(4000 + n), To: at(4001 + n)})
			}
		}, excluded},
		"a quorum is emptied before the pause": {5, func(s *script) {
			for n := 1; n <= 3; n++ {
				s.harm(fault.RestartEmpty, n, 1900, 1950)
			}
		}, counts},
		"a quorum is emptied after the grant": {5, func(s *script) {
			for n := 1; n <= 3; n++ {
				s.harm(fault.RestartEmpty, n, 9101, 9200)
			}
		}, counts},
		"emptied, and each restored before": {5, func(s *script) {
			s.harm(fault.RestartEmpty, 1, 3100, 3100) // restored by 6101
			s.harm(fault.RestartEmpty, 2, 5000, 5000)
			s.harm(fault.RestartEmpty, 3, 6102, 6102)
		}, counts},
		"emptied, and one cut off when it was to be restored": {5, func(s *script) {
			s.harm(fault.RestartEmpty, 1, 3100, 3100)
			s.harm(fault.Cut, 1, 5050, 5500) // restored by 6501
			s.harm(fault.RestartEmpty, 2, 5000, 5000)
			s.harm(fault.RestartEmpty, 3, 6102, 6102)
		}, excluded},
		"one of a bare quorum is emptied": {3, empty(1), counts},
		"one of a bare quorum is emptied beside a dead one": {3, func(s *script) {
			s.harm(fault.FreezeServer, 2, 2500, 8000)
			s.harm(fault.Cut, 3, 2500, 8000)
			s.harm(fault.RestartEmpty, 1, 4100, 4200)
		}, excluded},
		"one of more is emptied beside a dead one": {4, func(s *script) {
			s.harm(fault.FreezeServer, 2, 2500, 8000)
			s.harm(fault.RestartEmpty, 1, 4100, 4200)
		}, counts},
		"one of a bare quorum that others have joined": {3, func(s *script) {
			s.harm(fault.FreezeServer, 2, 2500, 3001)
			s.harm(fault.RestartEmpty, 1, 4100, 4200)
			s.harm(fault.Cut, 3, 5000, 8000)
		}, counts},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t)
			s.call(1, record.Pause, "a", record.Forever, 2000).returns(3000, 10, test.nodes)
			test.strikes(s)
			s.tick(0, 9000, 9100).release(9110)
			if test.want == counts {
				s.check(checker.Unpaused)
				return
			}
			v := s.check()
			require.Len(t, v.Breaches, 1)
			require.NotEmpty(t, v.Breaches[0].Excuse)
			breaches, twins := v.ExcludedTicks()
			require.Equal(t, 1, breaches)
			require.Zero(t, twins)
		})
	}
}
