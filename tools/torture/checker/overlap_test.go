package checker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/tools/torture/checker"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// overlapping is a history with one overlap: the older lease, last extended at 1300, is released at
// 1600; the newer is granted at 1500.
func overlapping(t *testing.T) *script {
	s := newScript(t)
	s.grant(0, 10, 1000).valid(1350, 1300).release(1600)
	s.grant(1, 20, 1500).release(1700)
	return s
}

func TestOverlapIsFound(t *testing.T) {
	v := overlapping(t).check(checker.Overlap, checker.Unlinear)
	require.Contains(t, v.Violations[0].Text, "were both live for 100ms, from 1.5s")
}

func TestEveryPairIsFound(t *testing.T) {
	s := overlapping(t)
	s.grant(2, 30, 1550).release(1560)
	s.check(checker.Overlap, checker.Overlap, checker.Overlap, checker.Unlinear)
}

func TestKeysAreApart(t *testing.T) {
	s := overlapping(t)
	for i := range s.Records["c1.1"] {
		s.Records["c1.1"][i].Key = "b"
	}
	s.check()
}

// What ends a lease, and when, is all that can keep two from overlapping.
func TestEnds(t *testing.T) {
	deadline := 998 + int(validity/msec)
	for name, test := range map[string]struct {
		end  func(*script, *lease)
		last int // the latest grant that overlaps
	}{
		"deadline":       {func(s *script, l *lease) {}, deadline},
		"extended":       {func(s *script, l *lease) { l.valid(1600, 1500) }, 1500 + int(validity/msec)},
		"release":        {func(s *script, l *lease) { l.release(1400) }, 1400},
		"late release":   {func(s *script, l *lease) { l.release(2500) }, deadline},
		"loss":           {func(s *script, l *lease) { l.lost(1450) }, 1450},
		"release, loss":  {func(s *script, l *lease) { l.lost(1450).release(1460) }, 1450},
		"death":          {func(s *script, l *lease) { s.kill(0, 1300) }, 1300},
		"late death":     {func(s *script, l *lease) { s.kill(0, 3000) }, deadline},
		"unseen death":   {func(s *script, l *lease) { l.valid(1200, 998) }, 1200},
		"death, release": {func(s *script, l *lease) { l.release(1250); s.kill(0, 1300) }, 1250},
	} {
		t.Run(name, func(t *testing.T) {
			for grant, want := range map[int][]checker.Kind{
				test.last - 1: {checker.Overlap, checker.Unlinear},
				test.last:     nil,
				test.last + 1: nil,
			} {
				s := newScript(t)
				l := s.grant(0, 10, 1000)
				test.end(s, l)
				if name != "unseen death" {
					// It works on, so its journal goes on.
					s.record(0, history.Record{Kind: history.Votes, At: at(80_000)})
				}
				s.grant(1, 20, grant)
				s.kill(1, grant+10)
				s.check(want...)
			}
		})
	}
}

// A client that is frozen between the grant and the return of Acquire has a lease that never lives.
func TestLeaseThatIsReturnedTooLateNeverLives(t *testing.T) {
	s := newScript(t)
	s.slowGrant(0, 10, 1000, 3000).release(3001)
	s.grant(1, 20, 2000).release(2500)
	s.grant(2, 30, 2900).release(3500)
	s.check()
}

func TestExclusions(t *testing.T) {
	const excluded, counts = true, false
	for name, test := range map[string]struct {
		kind plan.Kind
		when int
		jump time.Duration
		want bool
	}{
		"clock forward":                          {plan.ClockForward, 1400, time.Millisecond, excluded},
		"clock forward as the newer was granted": {plan.ClockForward, 1500, time.Second, excluded},
		"clock forward before the extension":     {plan.ClockForward, 1298, time.Second, counts},
		"clock forward after the newer grant":    {plan.ClockForward, 1501, time.Second, counts},
		"clock put right forward":                {plan.ClockBack, 1400, time.Second, excluded},
		"clock back":                             {plan.ClockBack, 1400, -time.Second, counts},
		"restart without data":                   {plan.RestartEmpty, 1400, 0, counts},
	} {
		t.Run(name, func(t *testing.T) {
			s := overlapping(t)
			s.strike(test.kind, test.when, test.jump)
			if test.want == counts {
				s.check(checker.Overlap, checker.Unlinear)
				return
			}
			v := s.check() // porcupine too is content
			require.Len(t, v.Excused, 1)
		})
	}
}

// An extension of the older lease after the newer was granted does not narrow the time in which the
// data may have been lost.
func TestExclusionLooksAtTheExtensionBeforeTheGrant(t *testing.T) {
	s := newScript(t)
	s.grant(0, 10, 1000).valid(1350, 1300).valid(1580, 1550).release(1600)
	s.grant(1, 20, 1500).release(1700)
	s.strike(plan.ClockForward, 1400, time.Second)
	require.Len(t, s.check().Excused, 1)
}

// Of an excluded overlap the tokens may be in either order if the rounds went on at the same time,
// and not if one began when the other was over.
func TestTokensOfExcludedOverlap(t *testing.T) {
	for name, test := range map[string]struct {
		begun, jump int
		want        []checker.Kind
	}{
		"at the same time":          {990, 1001, nil},
		"without a jump":            {990, 2000, []checker.Kind{checker.Overlap, checker.Unlinear}},
		"one round after another's": {1001, 1001, []checker.Kind{checker.Unlinear}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t)
			s.grant(0, 20, 1000).release(1040)
			s.slowGrant(1, 10, test.begun, 1010).release(1050)
			s.grant(2, 30, 1060).release(1070)
			s.strike(plan.ClockForward, test.jump, time.Second)
			s.check(test.want...)
		})
	}
}

// An excluded overlap excuses nothing else on the key.
func TestExclusionIsOfOnePair(t *testing.T) {
	s := overlapping(t)
	s.strike(plan.ClockForward, 1400, time.Second)
	s.grant(2, 30, 1650).release(1660) // while the newer lease was live, which was acquired after the jump
	s.check(checker.Overlap, checker.Unlinear)
}
